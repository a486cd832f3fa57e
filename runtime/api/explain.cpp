// What became of a model, and of a mini-batch.
#include "runtime/api/compile.h"
#include "runtime/api/options.h"
#include "runtime/api/weights.h"
#include "runtime/artefact/signature.h"

using namespace sheaf;
using namespace sheaf::api;

struct sheaf_explanation : compile::Explanation {};

namespace {

/// The weights that a session has now, and the instances of a batch. Both are locked.
compile::MiniBatch miniBatchOf(Running &running, const ValueStore &store, uint32_t repetitions) {
  const LoadedModel &model = *store.model;
  compile::MiniBatch batch;
  batch.instances = store.instances;
  batch.signature = artefact::signature(model.artefact().description());
  rt::Session &session = *runningFor(running, store.model).session;
  for (size_t weight : model.weights()) {
    const rt::ParamDesc &param = model.model().params[weight];
    batch.weights.emplace_back(param.name, session.param(weight).rowMajor());
  }
  const rt::SessionOptions &options = session.options();
  batch.threads = options.threads;
  batch.memoryLimit = running.options.memory_limit;
  batch.hostStackBytes = running.options.max_depth ? options.hostStackBytes : 0;
  batch.sampleSeed = options.sampleSeed;
  batch.maxSteps = options.maxSteps;
  if (repetitions)
    batch.repetitions = repetitions;
  return batch;
}

void explain(const sheaf_compile_options &options, const sheaf_explain_options &what,
             std::vector<compile::Finding> &findings, compile::Explanation &explanation) {
  if (!what.session != !what.batch)
    throw Invalid("a mini-batch is a session and a batch: options has one of them");
  compile::Request request = requestOf(options);
  Weights(options).bind(request);
  compile::Answer answer;
  if (what.batch) {
    std::scoped_lock lock(what.session->running->mutex, what.batch->mutex);
    std::shared_ptr<ValueStore> store = what.batch->store;
    if (store->instances.empty())
      throw Invalid("the batch has no instances");
    store->requireNoneKept();
    compile::MiniBatch batch = miniBatchOf(*what.session->running, *store, what.repetitions);
    compiler().explain(request, &batch, answer, explanation);
  } else {
    compiler().explain(request, nullptr, answer, explanation);
  }
  findings = std::move(answer.findings);
  checkOutcome(answer, findings);
}

} // namespace

sheaf_status sheaf_explain(const sheaf_compile_options *options, const sheaf_explain_options *what,
                           sheaf_explanation **explanation, sheaf_diagnostics **diagnostics) {
  return guardedTelling(diagnostics, [&](std::vector<compile::Finding> &findings) {
    given(options, "options");
    given(explanation, "explanation");
    auto made = std::make_unique<sheaf_explanation>();
    explain(known(options, "sheaf_compile_options"), known(what, "sheaf_explain_options"), findings,
            *made);
    *explanation = made.release();
  });
}

const char *sheaf_explanation_text(const sheaf_explanation *explanation) {
  return explanation ? explanation->text.c_str() : "";
}

const char *sheaf_explanation_json(const sheaf_explanation *explanation) {
  return explanation ? explanation->json.c_str() : "";
}

const char *sheaf_explanation_page(const sheaf_explanation *explanation) {
  return explanation ? explanation->page.c_str() : "";
}

void sheaf_explanation_release(sheaf_explanation *explanation) { delete explanation; }
