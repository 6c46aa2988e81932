#!/bin/sh
# Builds a driver of CUTLASS: cutlass.sh FOLDER CUTLASS_SOURCE OUT.so, where FOLDER holds the driver's sources and
# tiles.txt, and CUTLASS_SOURCE holds include/ and tools/ of CUTLASS 4 (of the package nvidia-cutlass:
# cutlass_library/source). The source that names TILE_M is compiled once for each line of tiles.txt, the others once.
# Objects that are newer than their source are kept; JOBS compilers run at a time (default 1; half a minute and 1 GB
# each, of sparse products three times that).
set -eu
if [ $# -ne 3 ] || [ ! -f "$1/tiles.txt" ] || [ ! -f "$2/include/cute/tensor.hpp" ]; then
  echo "error: expected cutlass.sh FOLDER CUTLASS_SOURCE OUT.so, and ${1:-FOLDER}/tiles.txt and ${2:-CUTLASS_SOURCE}/include/cute/tensor.hpp to exist" >&2
  exit 2
fi
here=$(cd "$1" && pwd)
source=$2 out=$3 objects=${OBJECTS:-$3.objects}
mkdir -p "$objects"
flags="-std=c++17 -O3 -DNDEBUG -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Xcompiler -fPIC -I$source/include -I$source/tools/util/include"

compile() { # object, source, defines
  object=$objects/$1.o text=$2
  shift 2
  if [ ! "$object" -nt "$text" ]; then
    nvcc $flags "$@" -c "$text" -o "$object.part" && mv "$object.part" "$object" || echo "left out: $object" >&2
  fi
}

for text in "$here"/*.cu; do
  name=$(basename "$text" .cu)
  if ! grep -q TILE_M "$text"; then
    echo "$name $text"
    continue
  fi
  while read -r m n k cm cn schedule; do
    defines="-DTILE_M=$m -DTILE_N=$n -DTILE_K=$k -DCLUSTER_M=$cm -DCLUSTER_N=$cn${schedule:+ -DSCHEDULE=$schedule}"
    echo "$name.$m.$n.$k.$cm.$cn${schedule:+.$schedule} $text $defines"
  done <"$here/tiles.txt"
done >"$objects/list"
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
