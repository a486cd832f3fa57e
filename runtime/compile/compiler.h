//===- compiler.h - What the libraries say to each other --------*- C++ -*-===//
//
// libsheaf_runtime opens libsheaf_compiler when it is first asked to compile. What goes from one to
// the other stands here: plain data, in types of the C++ library, and no code. Each has the run
// time's code by itself; what is compiled is loaded by the one that runs it. Only libraries of one
// build go together, which Handshake makes sure of.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_COMPILE_COMPILER_H
#define SHEAF_RUNTIME_COMPILE_COMPILER_H

#include "runtime/artefact/artefact.h"
#include "runtime/compile/built.h"
#include "runtime/io/model_config.h"
#include "runtime/io/vocab.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sheaf::compile {

/// What a name after `use` stands for; a text with an empty name is not there.
struct UsedFile {
  std::string name, text;
};

struct Request {
  std::string name; ///< of the source, for messages; a path if it is a file
  std::string text;
  std::shared_ptr<const Built> built; ///< instead of a text
  /// Finds files that the source uses: asked before the library of layers. Null: those beside it.
  std::function<UsedFile(const std::string &used, const std::string &by)> resolve;
  std::string library; ///< the directory that has `lib`; empty: that beside the compiler
  std::string entry = "main";
  std::map<std::string, int64_t> dims;
  io::Vocabularies vocabularies;
  /// Data whose words make those that are not given; without a name: none. Their format, or empty.
  io::SourceText words;
  std::string wordsFormat;
  /// Where weights come from, and the dims and constants that they were made with.
  std::string weights;
  std::map<std::string, int64_t> weightDims;
  std::map<std::string, double> weightConstants;
  std::optional<io::ModelConfig> weightConfig; ///< beside them
  std::vector<std::string> without;
  std::string target = "cpu", targetCpu = "host";
  rt::CacheSizes targetCaches; ///< 0: as they are found
  bool bf16 = false;
  bool training = false;
  bool inputGradients = false; ///< in training
  bool dropout = false;
  unsigned threads = 2;
  std::string store; ///< a directory; empty: none
  uint64_t storeLimit = uint64_t(256) << 20;
  std::stop_token stop;
};

struct Place {
  std::string file;
  int64_t line = 0, column = 0, endLine = 0, endColumn = 0; ///< from 1; the end is after the last
};

struct Finding {
  enum Severity { Error, Warning, Note } severity = Error;
  Place place; ///< without a file: of the whole
  std::string message, help;
  std::vector<Finding> notes;
  std::string text; ///< as the command prints it
};

struct Answer {
  enum Outcome {
    Compiled,
    Errors,      ///< in the source: findings tell
    Refused,     ///< what was asked for does not go with the source
    NotReadable, ///< a file
    Stopped,     ///< was asked for
    NoMemory,    ///< of the machine
    Internal     ///< a bug of Sheaf's
  } outcome = Internal;
  std::string message; ///< unless it was compiled
  /// What was refused or could not be read: the file, if it was one, and the message without it.
  ErrorPlace place;
  std::string reason;
  std::vector<Finding> findings;
  artefact::Compiled compiled;
  io::Vocabularies vocabularies; ///< all that the model has
  /// By parameter: what else files of weights may call it.
  std::map<std::string, std::vector<std::string>> storedNames;
  std::map<std::string, int64_t> dims; ///< that were given, or that the weights tell
  std::string sourceHash;              ///< io::contentHash() of the source and what it uses
};

/// A mini-batch that is to be told of.
struct MiniBatch {
  std::span<const rt::Instance> instances; ///< of a model with this signature
  std::string signature;                   ///< artefact::signature()
  /// The elements of every parameter that is the source's by its name, row by row, unpadded.
  std::vector<std::pair<std::string, std::vector<uint8_t>>> weights;
  unsigned threads = 1;
  uint64_t memoryLimit = 0, hostStackBytes = 0, sampleSeed = 0;
  int64_t maxSteps = 0;    ///< 0: as sessions have it
  int64_t repetitions = 9; ///< after two that warm up
};

/// What `sheaf explain` prints, as text and as JSON, and as the page that it draws.
struct Explanation {
  std::string text, json, page; ///< no page without a mini-batch
};

/// How large the types are that go from one library to the other, and the version.
struct Handshake {
  const char *version = SHEAF_VERSION;
  std::array<size_t, 9> sizes = {
      sizeof(Request),     sizeof(Answer),    sizeof(Built::Step),    sizeof(MiniBatch),
      sizeof(Explanation), sizeof(rt::Model), sizeof(rt::KernelDesc), sizeof(artefact::Description),
      sizeof(std::string)};
};

/// The only symbol of libsheaf_compiler, kCompilerSymbol, is of this type.
struct Compiler {
  Handshake handshake;
  /// Does not throw. From any thread, several at a time.
  void (*compile)(const Request &request, Answer &answer) noexcept;
  /// Compiles, and says what became of the model; with a mini-batch, runs that and says what it
  /// did. `answer` has all but what was compiled. Throws nothing, and is called as the other.
  void (*explain)(const Request &request, const MiniBatch *batch, Answer &answer,
                  Explanation &explanation) noexcept;
  /// What was built, as a text. Throws nothing, and is called as the others.
  void (*print)(const Built &built, Answer &answer, std::string &text) noexcept;
};
inline constexpr const char *kCompilerSymbol = "sheaf_compiler_library";

} // namespace sheaf::compile

#endif // SHEAF_RUNTIME_COMPILE_COMPILER_H
