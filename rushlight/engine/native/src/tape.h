/* Adds the functions of tape.c to the module. */
int rl_add_tape(PyObject *module);
