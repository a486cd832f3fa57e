//===- artefact_bench.cpp - An artefact against just-in-time --------------===//
//
// artefact_bench MODEL.sheaf MODEL.sheafc DATA [BATCH [PAIRS]]: opens the artefact, compiles the
// source with its dims, gives both the same weights, and runs a mini-batch in turn. Prints the time
// of opening and of the first session, both times of a mini-batch and their ratio with its 95 %
// interval; fails when a result differs in a bit.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/Compiler.h"
#include "compiler/driver/Library.h"
#include "compiler/measure/Timing.h"
#include "runtime/artefact/artefact.h"
#include "runtime/io/output.h"
#include "runtime/io/read.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace sheaf;
using driver::median;

namespace {

double milliseconds() { return driver::seconds() * 1e3; }

std::unique_ptr<driver::CompiledModel> compileLike(const SourceFile &source,
                                                   const rt::Model &model) {
  driver::CompileOptions options;
  options.dims = model.dims;
  options.entry = model.entry.name;
  Diagnostics diags(source);
  std::unique_ptr<driver::CompiledModel> compiled = driver::compile(source, options, diags);
  if (!compiled)
    throw UserError(diags.render(false));
  return compiled;
}

void copyWeights(const rt::Session &from, rt::Session &to) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < to.model().params.size(); ++i) {
    rt::TensorView view = from.param(i);
    bytes.resize(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
    view.copyTo(bytes.data());
    to.setParam(i, bytes);
  }
}

std::string results(rt::Session &session, std::span<const rt::Instance> instances) {
  io::JsonValueWriter writer(session.model().types, [&](uint32_t type, const rt::Slot *slots) {
    return session.tensor(type, slots);
  });
  std::string text;
  for (const rt::Outcome &outcome : session.run(instances)) {
    if (outcome.ok())
      writer.append(text, session.model().entry.resultType, outcome.slots);
    text += '\n';
  }
  return text;
}

double timeOf(rt::Session &session, std::span<const rt::Instance> instances) {
  double begin = milliseconds();
  session.run(instances);
  return milliseconds() - begin;
}

int run(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s MODEL.sheaf MODEL.sheafc DATA [BATCH [PAIRS]]\n", argv[0]);
    return 2;
  }
  int64_t batch = argc > 4 ? std::atoll(argv[4]) : 64;
  int pairs = std::max(argc > 5 ? std::atoi(argv[5]) : 60, 2);
  double begin = milliseconds();
  std::unique_ptr<artefact::Artefact> artefact = artefact::Artefact::open(argv[2]);
  double opened = milliseconds();
  rt::Session loaded(artefact->model());
  std::printf("open %.2f ms, a session %.2f ms\n", opened - begin, milliseconds() - opened);

  io::SourceText text = io::readSource(argv[1]);
  SourceFile source(text.name, text.text, driver::fileResolver(text.name));
  std::unique_ptr<driver::CompiledModel> compiled = compileLike(source, artefact->model());
  rt::Session made(compiled->model());
  copyWeights(loaded, made);
  made.packWeights();

  io::Vocabularies vocabularies = artefact->vocabularies();
  io::VocabularyReader tokens(vocabularies);
  io::ReadOptions reading;
  reading.limit = batch;
  reading.dims = &artefact->model().dims;
  io::Dataset data =
      io::readDataset(argv[3], artefact->model().types, artefact->model().entry, tokens, reading);
  std::vector<rt::Instance> instances;
  for (int64_t i = 0; i < data.size(); ++i)
    instances.push_back(data.instance(i));
  if (results(loaded, instances) != results(made, instances)) {
    std::fprintf(stderr, "error: the results differ\n");
    return 1;
  }

  std::vector<double> fromFile, fromSource, logs;
  for (int i = 0; i < pairs; ++i) {
    double first = timeOf(i % 2 ? made : loaded, instances);
    double second = timeOf(i % 2 ? loaded : made, instances);
    fromFile.push_back(i % 2 ? second : first);
    fromSource.push_back(i % 2 ? first : second);
    logs.push_back(std::log(fromFile.back() / fromSource.back()));
  }
  double mean = 0, square = 0;
  for (double log : logs)
    mean += log / pairs;
  for (double log : logs)
    square += (log - mean) * (log - mean);
  double half = 1.96 * std::sqrt(square / (pairs - 1) / pairs);
  std::printf("the same bits; %zu instances, median of %d: artefact %.3f ms, just-in-time %.3f ms, "
              "ratio %.3f (%.3f to %.3f)\n",
              instances.size(), pairs, median(fromFile), median(fromSource), std::exp(mean),
              std::exp(mean - half), std::exp(mean + half));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
