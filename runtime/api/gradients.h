//===- gradients.h - What sheaf_gradients is --------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_GRADIENTS_H
#define SHEAF_RUNTIME_API_GRADIENTS_H

#include "runtime/api/handles.h"
#include "runtime/train/gradient_sum.h"
#include "sheaf/gradients.h"

/// Gradients that lie in a session until that runs or goes back again; or a sum, on its own.
struct sheaf_gradients {
  std::shared_ptr<const sheaf::api::LoadedModel> model;
  std::shared_ptr<sheaf::api::Running> running;     ///< of a sum: one without models
  std::shared_ptr<sheaf::api::RunOf> run;           ///< null: it is a sum
  std::shared_ptr<const sheaf::api::ResultData> of; ///< what went back
  uint64_t runs = 0, back = 0;                      ///< of the session, then
  std::unique_ptr<sheaf::rt::GradientSum> sum;
};

namespace sheaf::api {

/// The gradients, by parameter, while the mutex of `running` is held. Throws Invalid when they are
/// there no more.
std::span<const rt::ParamGradient> gradientsOf(const sheaf_gradients &gradients);

/// What sheaf_session_backward() does. `frozen`: parameters that have no gradients this time.
/// Throws.
std::unique_ptr<sheaf_gradients> backward(sheaf_session &session, const sheaf_result &result,
                                          const sheaf_cotangent *cotangents, size_t count,
                                          std::span<const size_t> frozen);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_GRADIENTS_H
