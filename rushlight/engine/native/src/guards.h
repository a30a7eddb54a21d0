/* Adds the function of guards.c to the module. */
int rl_add_guards(PyObject *module);
