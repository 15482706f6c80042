# Install rules: libraries, headers, the program, and a package that find_package(TransformerZoo) reads.
