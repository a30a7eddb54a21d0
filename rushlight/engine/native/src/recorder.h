/* Adds the functions of recorder.c to the module. */
int rl_add_recorder(PyObject *module);
