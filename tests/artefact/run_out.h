//===- run_out.h - Steps of an engine to the end ----------------*- C++ -*-===//
#ifndef SHEAF_TESTS_ARTEFACT_RUN_OUT_H
#define SHEAF_TESTS_ARTEFACT_RUN_OUT_H

#include "runtime/session/engine.h"

#include <stdexcept>

/// Steps until nothing is left; how many steps threw a std::runtime_error.
inline int runOut(sheaf::rt::Engine &engine) {
  int thrown = 0;
  for (bool more = true; more;) {
    try {
      more = engine.step();
    } catch (const std::runtime_error &) {
      ++thrown;
    }
  }
  return thrown;
}

#endif // SHEAF_TESTS_ARTEFACT_RUN_OUT_H
