/* Adds the class of reader.c to the module. */
int rl_add_reader(PyObject *module);
