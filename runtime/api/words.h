//===- words.h - Vocabularies that programs give ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_WORDS_H
#define SHEAF_RUNTIME_API_WORDS_H

#include "runtime/io/vocab.h"

#include <string>

namespace sheaf::api {

/// Of these words, the first of which is `<unk>`, or, without any, of a size. Throws Invalid, which
/// calls it `what`.
io::Vocabulary vocabularyOfWords(const char *const *words, int64_t size, const std::string &what);

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_WORDS_H
