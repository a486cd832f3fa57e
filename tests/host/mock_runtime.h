//===- mock_runtime.h - The runtime's ABI, written down -------------------===//
//
// A stand-in for the runtime that keeps what host code asked for, to be looked at by tests.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TESTS_HOST_MOCK_RUNTIME_H
#define SHEAF_TESTS_HOST_MOCK_RUNTIME_H

#include "runtime/model/abi.h"

#include <csetjmp>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace sheaf::tests {

struct Record {
  uint32_t kernel;
  uint32_t depth;
  int64_t granules;
  std::vector<int32_t> words;
};

struct Mock {
  rt::Context context{};         ///< first: generated code reads it
  std::vector<uint32_t> wordsOf; ///< words of each kernel's records
  std::deque<Record> records;
  uint32_t nextGranule = 1000;
  std::map<uint32_t, std::vector<uint32_t>> tables; ///< of lists, by granule
  std::deque<std::vector<rt::Slot>> memory;
  std::deque<rt::ListObject> lists;

  // How a run ended.
  std::jmp_buf out;
  bool failed = false;
  uint32_t message = 0;
  int64_t a = 0, b = 0;

  rt::ListObject *makeList(int64_t elementSlots, int64_t size);
};

/// Address of an ABI function by name; null for others.
void *abiFunction(const std::string &name);

} // namespace sheaf::tests

#endif // SHEAF_TESTS_HOST_MOCK_RUNTIME_H
