"""What families and spaces share if every configuration is planned and checked one by one."""
