//===- Backends.cpp - The table of back ends ------------------------------===//
#include "compiler/backends/Backends.h"

#include "compiler/kernels/Backend.h"
#include "compiler/kernels/cpu/Cpu.h"
#include "runtime/model/error.h"

#include <mutex>

namespace sheaf::backends {

namespace {

struct Table {
  std::mutex lock;
  std::vector<const kernels::Backend *> all = {&kernels::cpu::backend()};
};

Table &table() {
  static Table table;
  return table;
}

} // namespace

std::vector<const kernels::Backend *> all() {
  std::lock_guard guard(table().lock);
  return table().all;
}

const kernels::Backend *find(std::string_view name) {
  for (const kernels::Backend *backend : all())
    if (backend->name() == name)
      return backend;
  return nullptr;
}

void add(const kernels::Backend &backend) {
  if (find(backend.name()))
    throw InternalError("there is a back end '" + std::string(backend.name()) + "' already");
  std::lock_guard guard(table().lock);
  table().all.push_back(&backend);
}

} // namespace sheaf::backends
