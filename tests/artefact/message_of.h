//===- message_of.h - What a call of the interface throws -------*- C++ -*-===//
#ifndef SHEAF_TESTS_ARTEFACT_MESSAGE_OF_H
#define SHEAF_TESTS_ARTEFACT_MESSAGE_OF_H

#include "sheaf/sheaf.hpp"

#include <functional>
#include <gtest/gtest.h>

/// The message of the error that `f` throws, which must be of this kind.
inline std::string messageOf(const std::function<void()> &f, sheaf_status status) {
  try {
    f();
  } catch (const sheaf::Error &error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

#endif // SHEAF_TESTS_ARTEFACT_MESSAGE_OF_H
