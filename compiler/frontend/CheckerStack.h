//===- CheckerStack.h - Running with room to recurse ------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERSTACK_H
#define SHEAF_COMPILER_FRONTEND_CHECKERSTACK_H

#include <functional>

namespace sheaf {

/// Runs `work` to its end on a thread with a large, lazily committed stack, because walks over
/// programs recurse and some callers' stacks are small. Passes exceptions on.
void runOnLargeStack(const std::function<void()> &work);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERSTACK_H
