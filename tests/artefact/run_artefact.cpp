// Runs an artefact over data and prints what `sheaf run` does, on machines that have no compiler:
//
//   run_artefact MODEL.sheafc DATA [BATCH [THREADS [hostile]]]
//   run_artefact MODEL.sheafc DATA engine [THREADS [hostile]]
//
// The second submits the instances to an engine, in another order and between its steps.
#include "runtime/artefact/artefact.h"
#include "runtime/io/output.h"
#include "runtime/io/read.h"
#include "runtime/model/error.h"
#include "runtime/session/engine.h"

#include <cstdio>
#include <random>
#include <string>
#include <vector>

using namespace sheaf;

namespace {

/// Calls `answer` with the outcome of every instance, by an engine.
template <typename Answer>
void serve(rt::Session &session, std::span<const rt::Instance> instances, Answer answer) {
  rt::Engine engine(session, {.slice = 50'000});
  std::mt19937 random(5);
  std::vector<rt::Instance> order(instances.begin(), instances.end());
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size();) {
    for (size_t end = std::min(order.size(), i + random() % 7); i < end; ++i)
      engine.submit({.instance = order[i],
                     .done = [&, i](const rt::Outcome &outcome) { answer(order[i], outcome); }});
    engine.step();
  }
  while (engine.step()) {
  }
}

/// Whether every instance ended well.
bool run(const std::vector<std::string> &arguments) {
  auto number = [&](size_t i, unsigned otherwise) {
    return arguments.size() > i ? static_cast<unsigned>(std::stoul(arguments[i])) : otherwise;
  };
  std::unique_ptr<artefact::Artefact> artefact = artefact::Artefact::open(arguments.at(0));
  const rt::Model &model = artefact->model();
  io::Vocabularies vocabularies = artefact->vocabularies();
  io::VocabularyReader tokens(vocabularies, /*strict=*/false);
  io::ReadOptions reading;
  reading.dims = &model.dims;
  io::Dataset data = io::readDataset(arguments.at(1), model.types, model.entry, tokens, reading);
  std::vector<rt::Instance> instances;
  for (int64_t i = 0; i < data.size(); ++i)
    instances.push_back({data.args(i), i});

  bool engine = arguments.size() > 2 && arguments[2] == "engine";
  size_t batch = engine ? 1 : number(2, 64);
  rt::SessionOptions options;
  options.threads = number(3, 1);
  options.hostile = arguments.size() > 4;
  options.memoryLimit = uint64_t(1) << 30; // emulators keep books of every page that is reserved
  rt::Session session(model, options);
  io::JsonValueWriter writer(
      model.types,
      [&](uint32_t type, const rt::Slot *slots) { return session.tensor(type, slots); },
      &vocabularies);
  bool ok = true;
  std::vector<std::string> lines(instances.size(), "null");
  auto answer = [&](const rt::Instance &instance, const rt::Outcome &outcome) {
    std::string &line = lines[static_cast<size_t>(instance.index)];
    if (outcome.ok()) {
      line.clear();
      writer.appendOutcome(line, model.entry, outcome.slots);
    } else {
      std::fprintf(stderr, "error: %s\n", outcome.error->message().c_str());
      ok = false;
    }
  };
  if (engine)
    serve(session, instances, answer);
  for (size_t begin = engine ? instances.size() : 0; begin < instances.size(); begin += batch) {
    std::span<const rt::Instance> some(instances);
    some = some.subspan(begin, std::min(batch, instances.size() - begin));
    std::span<const rt::Outcome> outcomes = session.run(some);
    for (size_t i = 0; i < some.size(); ++i)
      answer(some[i], outcomes[i]);
  }
  for (const std::string &line : lines)
    std::puts(line.c_str());
  return ok;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run({argv + 1, argv + argc}) ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
