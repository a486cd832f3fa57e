// What became of a model, and of a mini-batch.
#include "compiler/report/Explain.h"
#include "compiler/api/compile.h"
#include "compiler/report/HtmlReport.h"
#include "runtime/artefact/signature.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"

#include <fmt/format.h>

using namespace sheaf;
using namespace sheaf::compile;

namespace {

void setWeights(rt::Session &session, const MiniBatch &batch) {
  session.initParams(0); // those that the compiler made
  for (const auto &[name, elements] : batch.weights) {
    int64_t index = session.findParam(name);
    if (index < 0)
      throw UserError(fmt::format("the model has no weight '{}'", name));
    session.setParam(static_cast<size_t>(index), elements);
  }
}

driver::RunReport runOf(const driver::CompiledModel &model, const MiniBatch &batch) {
  driver::RunReportOptions options;
  options.repetitions = batch.repetitions;
  options.session.threads = batch.threads;
  options.session.memoryLimit = batch.memoryLimit;
  options.session.hostStackBytes = batch.hostStackBytes;
  options.session.sampleSeed = batch.sampleSeed;
  if (batch.maxSteps)
    options.session.maxSteps = batch.maxSteps;
  return driver::reportRun(
      model, batch.instances, [&](rt::Session &session) { setWeights(session, batch); }, options);
}

} // namespace

void api::explain(const Request &request, const MiniBatch *batch, Answer &answer,
                  Explanation &explanation) noexcept {
  answering(answer, [&] {
    compileModel(
        request, answer, [&](const driver::CompiledModel &model, const SourceFile &source) {
          std::optional<driver::RunReport> report;
          if (batch) {
            if (artefact::signature(describe(model, answer)) != batch->signature)
              throw UserError("the mini-batch is of a model with other arguments");
            report = runOf(model, *batch);
            explanation.text = driver::runReportText(model, *report, source) + "\nthe model\n\n";
          }
          explanation.text += driver::explainText(model);
          explanation.json = driver::explainJson(model, report ? &*report : nullptr, source);
          if (report)
            explanation.page = driver::htmlReport(explanation.json);
        });
  });
}
