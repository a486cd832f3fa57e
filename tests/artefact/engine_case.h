//===- engine_case.h - Tests of engines over an artefact --------*- C++ -*-===//
#ifndef SHEAF_TESTS_ARTEFACT_ENGINE_CASE_H
#define SHEAF_TESTS_ARTEFACT_ENGINE_CASE_H

#include "runtime/artefact/artefact.h"
#include "runtime/io/output.h"
#include "runtime/session/engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

class EngineCase : public testing::Test {
protected:
  explicit EngineCase(const std::string &path) : artefact(sheaf::artefact::Artefact::open(path)) {}

  std::unique_ptr<sheaf::artefact::Artefact> artefact;
  const sheaf::rt::Model &model = artefact->model();

  sheaf::rt::SessionOptions small() const {
    sheaf::rt::SessionOptions options;
    options.memoryLimit = uint64_t(256) << 20;
    options.hostStackBytes = uint64_t(4) << 20;
    options.rowSpaceBytes = uint64_t(1) << 30;
    return options;
  }

  /// The same as a load of many instances asks for.
  template <typename Load> sheaf::rt::SessionOptions optionsOf(const Load &load) const {
    sheaf::rt::SessionOptions options = small();
    options.hostile = load.hostile;
    options.threads = load.threads;
    options.memoryLimit = load.memoryLimit;
    options.keepBytes = load.keepBytes;
    return options;
  }

  std::string text(const sheaf::rt::Session &session, uint32_t type,
                   const sheaf::rt::Slot *slots) const {
    sheaf::io::JsonValueWriter writer(model.types, [&](uint32_t part, const sheaf::rt::Slot *at) {
      return session.tensor(part, at);
    });
    std::string line;
    writer.append(line, type, slots);
    return line;
  }

  std::string text(const sheaf::rt::Session &session, const sheaf::rt::Outcome &outcome) const {
    return outcome.ok() ? text(session, model.entry.resultType, outcome.slots)
                        : "error: " + outcome.error->message();
  }

  /// All that an instance has emitted, as its result has it.
  std::string emittedText(const sheaf::rt::Session &session,
                          const sheaf::rt::Outcome &outcome) const {
    sheaf::rt::EmittingOutcome where(model.types, model.entry);
    return text(session, where.list, outcome.slots + where.listSlot);
  }
};

#endif // SHEAF_TESTS_ARTEFACT_ENGINE_CASE_H
