//===- weights.h - Weights of what is compiled ------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_WEIGHTS_H
#define SHEAF_RUNTIME_API_WEIGHTS_H

#include "runtime/api/handles.h"
#include "runtime/compile/compiler.h"
#include "runtime/io/weights.h"
#include "runtime/model/error.h"
#include "sheaf/compiler.h"

#include <memory>
#include <span>
#include <vector>

namespace sheaf::api {

/// Calls `work`; what a user did wrong there is an argument, but for files that cannot be read.
template <typename Work> auto fromArguments(Work work) {
  try {
    return work();
  } catch (const OutOfMemory &) {
    throw;
  } catch (const NotReadable &) {
    throw;
  } catch (const PlacedError &error) {
    throw Invalid(error.what(), error.place(), error.message());
  } catch (const UserError &error) {
    throw Invalid(error.what());
  }
}

/// Elements of options. Throws Invalid when there should be some.
template <typename T> std::span<const T> array(const T *elements, size_t count, const char *what) {
  if (count > 0 && !elements)
    throw Invalid(std::string("options.") + what + " is null");
  return {elements, count};
}

/// Where the options say that the weights come from: a file, tensors, or the initialisers.
class Weights {
public:
  /// Throws Invalid. The options' tensors must stay.
  explicit Weights(const sheaf_compile_options &options);

  /// Tells the compiler of the dims that the weights were made with.
  void bind(compile::Request &request) const;
  /// Gives a session its weights; what no parameter takes becomes a warning.
  void set(rt::Session &session, const compile::Answer &compiled,
           std::vector<compile::Finding> &findings) const;

private:
  void add(const sheaf_named_tensor &given);

  std::unique_ptr<io::WeightFile> file_; ///< null: initialisers
  std::vector<std::vector<uint8_t>> gathered_;
  io::LoadOptions loading_;
  uint64_t seed_;
};

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_WEIGHTS_H
