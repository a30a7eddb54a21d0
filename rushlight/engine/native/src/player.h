/* Adds the function of player.c to the module. */
int rl_add_player(PyObject *module);
