/* Adds the function of memory.c to the module. */
int rl_add_memory(PyObject *module);
