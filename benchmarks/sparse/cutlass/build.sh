#!/bin/sh
# Builds the driver: build.sh CUTLASS_SOURCE OUT.so, where CUTLASS_SOURCE holds include/ and tools/ of CUTLASS 4
# (of the package nvidia-cutlass: cutlass_library/source). Objects that are newer than their source are kept; JOBS
# compilers run at a time (default 1; a minute and a half and 2 GB each).
set -eu
if [ $# -ne 2 ] || [ ! -f "$1/include/cute/tensor.hpp" ]; then
  echo "error: expected build.sh CUTLASS_SOURCE OUT.so, and ${1:-CUTLASS_SOURCE}/include/cute/tensor.hpp to exist" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
source=$1 out=$2 objects=${OBJECTS:-$2.objects}
mkdir -p "$objects"
flags="-std=c++17 -O3 -DNDEBUG -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Xcompiler -fPIC -I$source/include -I$source/tools/util/include"

compile() { # object, source, defines
  object=$objects/$1.o text=$here/$2
  shift 2
  if [ ! "$object" -nt "$text" ]; then
    nvcc $flags "$@" -c "$text" -o "$object.part" && mv "$object.part" "$object" || echo "left out: $object" >&2
  fi
}

{
  echo driver driver.cu
  while read -r m n k cm cn schedule; do
    echo "gemm.$m.$n.$k.$cm.$cn.$schedule" gemm.cu "-DTILE_M=$m -DTILE_N=$n -DTILE_K=$k -DCLUSTER_M=$cm -DCLUSTER_N=$cn -DSCHEDULE=$schedule"
  done <"$here/tiles.txt"
} >"$objects/list"
running=0
while read -r name text defines; do
  compile "$name" "$text" $defines &
  running=$((running + 1))
  if [ "$running" -ge "${JOBS:-1}" ]; then
    wait
    running=0
  fi
done <"$objects/list"
wait
nvcc -shared -cudart static -o "$out" "$objects"/*.o
