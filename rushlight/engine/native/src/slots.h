/* Attributes of Python's objects, read where they lie: what a class keeps in __slots__ has one place in all its objects,
   and in those of classes that come from it. Where an attribute is anything else it is asked for. */
typedef struct {
    const char *text;
    PyObject *name, *class; /* of whose objects the place is known; NULL: of none */
    Py_ssize_t place;
} rl_slot;

#define SLOT(name) {.text = name}

/* Finds the places of many: each in the first of the classes, a tuple, that has a slot of this name. */
int rl_find_slots(rl_slot *const *slots, size_t count, PyObject *classes);

/* A new reference; NULL with an exception. */
PyObject *rl_get(PyObject *object, const rl_slot *slot);

/* What the object holds in a slot, for as long as it is there; after an exception None. */
PyObject *rl_peek(PyObject *object, const rl_slot *slot);

int rl_put(PyObject *object, const rl_slot *slot, PyObject *value);

/* An object of a class whose __new__ is object's, without having been initialized. */
PyObject *rl_make(PyObject *class);
