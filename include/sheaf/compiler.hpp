//===- compiler.hpp - Compiling, for C++ ------------------------*- C++ -*-===//
//
// A thin header over compiler.h for C++17. What the options mean is said there.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_HPP
#define SHEAF_COMPILER_HPP

#include "sheaf/compiler.h"
#include "sheaf/sheaf.hpp"

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {

/// Something about a source. Lines and columns count from 1; without a file they are 0.
struct Diagnostic {
  sheaf_severity severity = SHEAF_ERROR;
  std::string file;
  std::int64_t line = 0, column = 0, endLine = 0, endColumn = 0;
  std::string message, help;
  std::string text; ///< as the command prints it
  std::vector<Diagnostic> notes;
};

/// What compile() throws for a source with errors. what() is the first of them.
class CompileError : public Error {
public:
  CompileError(const std::string &message, std::vector<Diagnostic> diagnostics)
      : Error(SHEAF_NOT_COMPILED, message), diagnostics_(std::move(diagnostics)) {}
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  /// All of them as the command prints them.
  std::string text() const {
    std::string all;
    for (const Diagnostic &diagnostic : diagnostics_)
      all += diagnostic.text;
    return all;
  }

private:
  std::vector<Diagnostic> diagnostics_;
};

/// One of: a file, words of which the first is "<unk>", a size alone.
struct Vocabulary {
  std::string name; ///< of token<name>; empty: of token
  std::string path;
  std::vector<std::string> words;
  std::int64_t size = 0;
};

/// A file that a source uses.
struct UsedFile {
  std::string name, text;
};

/// What is empty or 0 is left to compile().
struct CompileOptions {
  std::string path;
  std::optional<std::string> text; ///< instead of a path
  std::string name;                ///< of the text in messages
  /// Finds the file that file `by` uses as `used`, if it is there. What it throws comes out of
  /// compile().
  std::function<std::optional<UsedFile>(const std::string &used, const std::string &by)> resolve;
  std::string library;
  std::string entry;
  std::map<std::string, std::int64_t> dims;
  std::vector<Vocabulary> vocabularies;
  std::string wordsOf, wordsFormat; ///< a data file for those that are not given
  std::string weights;
  std::map<std::string, DLTensor> tensors; ///< instead of a file
  std::vector<std::string> renames;        ///< "FROM=TO"
  std::uint64_t seed = 0;
  sheaf_precision precision = SHEAF_F32;
  std::uint32_t threads = 0;
  std::string targetCpu;
  std::vector<std::string> without;
  bool training = false;
  bool inputGradients = false; ///< in training
  bool dropout = false;
  std::string store;
  std::uint64_t storeLimit = 0;
  std::optional<Stop> stop;
};

namespace detail {

inline const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

inline Diagnostic diagnosticOf(const sheaf_diagnostic &from) {
  return {static_cast<sheaf_severity>(from.severity),
          from.file ? from.file : "",
          from.line,
          from.column,
          from.end_line,
          from.end_column,
          from.message,
          from.help,
          from.text,
          {}};
}

inline std::vector<Diagnostic> diagnosticsOf(const sheaf_diagnostics *from) {
  std::vector<Diagnostic> all;
  for (std::size_t i = 0; i < sheaf_diagnostics_count(from); ++i) {
    sheaf_diagnostic one{};
    one.size = sizeof one;
    check(sheaf_diagnostics_get(from, i, &one));
    all.push_back(diagnosticOf(one));
    for (std::size_t note = 0; note < one.note_count; ++note) {
      sheaf_diagnostic further{};
      further.size = sizeof further;
      check(sheaf_diagnostics_note(from, i, note, &further));
      all.back().notes.push_back(diagnosticOf(further));
    }
  }
  return all;
}

/// Asks a CompileOptions::resolve, whose exceptions must not go through C.
struct Resolving {
  const CompileOptions &options;
  UsedFile found;
  std::exception_ptr thrown;

  static int ask(void *user, const char *used, const char *by, sheaf_used_file *file) {
    auto &self = *static_cast<Resolving *>(user);
    if (self.thrown)
      return 0;
    try {
      std::optional<UsedFile> found = self.options.resolve(used, by);
      if (!found)
        return 0;
      self.found = std::move(*found);
    } catch (...) {
      self.thrown = std::current_exception();
      return 0;
    }
    file->name = self.found.name.c_str();
    file->text = self.found.text.data();
    file->length = self.found.text.size();
    return 1;
  }
};

} // namespace detail

/// Throws CompileError for a source with errors, Error for all else. `warnings`, if it is not null,
/// is given what there is to say of a source without errors.
inline Model compile(const CompileOptions &options, std::vector<Diagnostic> *warnings = nullptr) {
  using detail::orNull;
  std::vector<sheaf_dim> dims;
  for (const auto &[name, value] : options.dims)
    dims.push_back({name.c_str(), value});
  std::vector<std::vector<const char *>> words;
  std::vector<sheaf_vocabulary> vocabularies;
  words.reserve(options.vocabularies.size());
  for (const Vocabulary &vocabulary : options.vocabularies) {
    std::vector<const char *> &texts = words.emplace_back();
    for (const std::string &word : vocabulary.words)
      texts.push_back(word.c_str());
    vocabularies.push_back(
        {vocabulary.name.c_str(), orNull(vocabulary.path), texts.empty() ? nullptr : texts.data(),
         texts.empty() ? vocabulary.size : static_cast<std::int64_t>(texts.size())});
  }
  std::vector<sheaf_named_tensor> tensors;
  for (const auto &[name, tensor] : options.tensors)
    tensors.push_back({name.c_str(), &tensor});
  std::vector<const char *> renames;
  for (const std::string &rename : options.renames)
    renames.push_back(rename.c_str());
  std::vector<const char *> without;
  for (const std::string &name : options.without)
    without.push_back(name.c_str());

  sheaf_compile_options given{};
  given.size = sizeof given;
  given.path = orNull(options.path);
  if (options.text) {
    given.text = options.text->c_str();
    given.length = options.text->size();
  }
  given.name = orNull(options.name);
  detail::Resolving resolving{options, {}, nullptr};
  if (options.resolve) {
    given.resolve = detail::Resolving::ask;
    given.resolve_user = &resolving;
  }
  given.library = orNull(options.library);
  given.entry = orNull(options.entry);
  given.dims = dims.data();
  given.dim_count = dims.size();
  given.vocabularies = vocabularies.data();
  given.vocabulary_count = vocabularies.size();
  given.words_of = orNull(options.wordsOf);
  given.words_format = orNull(options.wordsFormat);
  given.weights = orNull(options.weights);
  given.tensors = tensors.data();
  given.tensor_count = tensors.size();
  given.renames = renames.data();
  given.rename_count = renames.size();
  given.seed = options.seed;
  given.precision = options.precision;
  given.threads = options.threads;
  given.target_cpu = orNull(options.targetCpu);
  given.without = without.data();
  given.without_count = without.size();
  given.training = options.training;
  given.input_gradients = options.inputGradients;
  given.dropout = options.dropout;
  given.store = orNull(options.store);
  given.store_limit = options.storeLimit;
  given.stop = options.stop ? options.stop->get() : nullptr;

  sheaf_model *model = nullptr;
  sheaf_diagnostics *diagnostics = nullptr;
  sheaf_status status = sheaf_compile(&given, &model, &diagnostics);
  std::string message = status == SHEAF_OK ? "" : sheaf_error_message();
  std::unique_ptr<sheaf_diagnostics, void (*)(sheaf_diagnostics *)> told(diagnostics,
                                                                         sheaf_diagnostics_release);
  std::optional<Model> compiled;
  if (status == SHEAF_OK)
    compiled.emplace(model);
  if (resolving.thrown)
    std::rethrow_exception(resolving.thrown);
  if (status == SHEAF_NOT_COMPILED)
    throw CompileError(message, detail::diagnosticsOf(told.get()));
  if (status != SHEAF_OK)
    throw Error(status, message);
  if (warnings)
    *warnings = detail::diagnosticsOf(told.get());
  return *compiled;
}

/// Writes an artefact, as `sheaf build` does.
inline void save(const Model &model, const std::string &path) {
  check(sheaf_model_save(model.get(), path.c_str()));
}

} // namespace sheaf

#endif // SHEAF_COMPILER_HPP
