#include "apps/command_line.h"

int main(int argc, char** argv) { return zoo::command_line(argc, argv); }
