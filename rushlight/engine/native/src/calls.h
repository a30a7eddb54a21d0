int rl_add_calls(PyObject *module);
