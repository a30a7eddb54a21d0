/* A Tensor of an array, of which nothing is known yet. */
PyObject *rl_wrapped(PyObject *array);

/* Adds the functions of calls.c to the module. */
int rl_add_calls(PyObject *module);
