//===- Backends.h - The table of back ends ----------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_BACKENDS_BACKENDS_H
#define SHEAF_COMPILER_BACKENDS_BACKENDS_H

#include <string_view>
#include <vector>

namespace sheaf::kernels {
class Backend;
} // namespace sheaf::kernels

namespace sheaf::backends {

/// All that there are; a compilation that is told nothing else takes the first.
std::vector<const kernels::Backend *> all();

/// Null if there is none of that name.
const kernels::Backend *find(std::string_view name);

/// One more, after all others. It must live as long as any thread may compile. Throws InternalError
/// when there is one of that name.
void add(const kernels::Backend &backend);

} // namespace sheaf::backends

#endif // SHEAF_COMPILER_BACKENDS_BACKENDS_H
