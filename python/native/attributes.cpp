#include "python/native/attributes.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE
#include <internal/pycore_dict.h>

Py_ssize_t sheaf::python::valuePlace(PyTypeObject *type, PyObject *name) {
  constexpr unsigned long needed = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_MANAGED_DICT;
  if ((type->tp_flags & needed) != needed)
    return -1;
  const PyDictKeysObject *keys = reinterpret_cast<PyHeapTypeObject *>(type)->ht_cached_keys;
  if (!keys || keys->dk_kind == DICT_KEYS_GENERAL)
    return -1;
  for (Py_ssize_t place = 0; place < keys->dk_nentries; ++place)
    if (DK_UNICODE_ENTRIES(keys)[place].me_key == name)
      return place;
  return -1;
}

#else

Py_ssize_t sheaf::python::valuePlace(PyTypeObject *, PyObject *) { return -1; }

#endif
