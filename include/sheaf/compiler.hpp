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
#include <memory>
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
      : CompileError(message, firstOf(diagnostics), std::move(diagnostics)) {}
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  /// All of them as the command prints them.
  std::string text() const {
    std::string all;
    for (const Diagnostic &diagnostic : diagnostics_)
      all += diagnostic.text;
    return all;
  }

private:
  CompileError(const std::string &message, const Diagnostic &first,
               std::vector<Diagnostic> &&diagnostics)
      : Error(SHEAF_NOT_COMPILED, message, first.message,
              {first.file, first.line, first.column, -1, ""}),
        diagnostics_(std::move(diagnostics)) {}
  static Diagnostic firstOf(const std::vector<Diagnostic> &diagnostics) {
    for (const Diagnostic &diagnostic : diagnostics)
      if (diagnostic.severity == SHEAF_ERROR)
        return diagnostic;
    return {};
  }

  std::vector<Diagnostic> diagnostics_;
};

/// One of: a file, words of which the first is "<unk>", a size alone.
struct Vocabulary {
  std::string name; ///< of token<name>; empty: of token
  std::string path;
  std::vector<std::string> words;
  std::int64_t size = 0;
};

/// Of words, for the models that have it by this name.
inline Vocabulary vocabularyOf(const Words &words, const std::string &name = "") {
  Vocabulary made{name, {}, {}, words.size()};
  for (std::int64_t i = 0; i < words.size() && sheaf_words_word(words.get(), i); ++i)
    made.words.push_back(words.word(i));
  return made;
}

/// A file that a source uses.
struct UsedFile {
  std::string name, text;
};

/// A model that a program built (builder.hpp). Copies are one.
class Source {
public:
  /// Takes what sheaf_model_builder_finish() gave.
  explicit Source(sheaf_source *source) : source_(source, sheaf_source_release) {}
  sheaf_source *get() const { return source_.get(); }
  /// As a text, which means the same.
  std::string text() const {
    const char *text = nullptr;
    check(sheaf_source_text(get(), &text));
    return text;
  }

private:
  std::shared_ptr<sheaf_source> source_;
};

/// What is empty or 0 is left to compile().
struct CompileOptions {
  std::string path;
  std::optional<std::string> text; ///< instead of a path
  std::string name;                ///< of the text in messages
  std::optional<Source> source;    ///< what was built, instead of a path and a text
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
  std::string target, targetCpu;
  std::uint64_t targetCacheL1 = 0, targetCacheL2 = 0;
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

/// The options as C takes them, and all that these point at.
class CompileCall {
public:
  explicit CompileCall(const CompileOptions &options) : resolving_{options, {}, nullptr} {
    for (const auto &[name, value] : options.dims)
      dims_.push_back({name.c_str(), value});
    words_.reserve(options.vocabularies.size());
    for (const Vocabulary &vocabulary : options.vocabularies) {
      std::vector<const char *> &texts = words_.emplace_back();
      for (const std::string &word : vocabulary.words)
        texts.push_back(word.c_str());
      vocabularies_.push_back(
          {vocabulary.name.c_str(), orNull(vocabulary.path), texts.empty() ? nullptr : texts.data(),
           texts.empty() ? vocabulary.size : static_cast<std::int64_t>(texts.size())});
    }
    for (const auto &[name, tensor] : options.tensors)
      tensors_.push_back({name.c_str(), &tensor});
    for (const std::string &rename : options.renames)
      renames_.push_back(rename.c_str());
    for (const std::string &name : options.without)
      without_.push_back(name.c_str());

    given_.size = sizeof given_;
    given_.path = orNull(options.path);
    if (options.text) {
      given_.text = options.text->c_str();
      given_.length = options.text->size();
    }
    given_.name = orNull(options.name);
    given_.source = options.source ? options.source->get() : nullptr;
    if (options.resolve) {
      given_.resolve = Resolving::ask;
      given_.resolve_user = &resolving_;
    }
    given_.library = orNull(options.library);
    given_.entry = orNull(options.entry);
    given_.dims = dims_.data();
    given_.dim_count = dims_.size();
    given_.vocabularies = vocabularies_.data();
    given_.vocabulary_count = vocabularies_.size();
    given_.words_of = orNull(options.wordsOf);
    given_.words_format = orNull(options.wordsFormat);
    given_.weights = orNull(options.weights);
    given_.tensors = tensors_.data();
    given_.tensor_count = tensors_.size();
    given_.renames = renames_.data();
    given_.rename_count = renames_.size();
    given_.seed = options.seed;
    given_.precision = options.precision;
    given_.threads = options.threads;
    given_.target = orNull(options.target);
    given_.target_cpu = orNull(options.targetCpu);
    given_.target_cache_l1 = options.targetCacheL1;
    given_.target_cache_l2 = options.targetCacheL2;
    given_.without = without_.data();
    given_.without_count = without_.size();
    given_.training = options.training;
    given_.input_gradients = options.inputGradients;
    given_.dropout = options.dropout;
    given_.store = orNull(options.store);
    given_.store_limit = options.storeLimit;
    given_.stop = options.stop ? options.stop->get() : nullptr;
  }
  CompileCall(const CompileCall &) = delete;

  /// Calls `call` with the options and where diagnostics go. Throws what compile() throws.
  template <typename Call> void operator()(std::vector<Diagnostic> *warnings, Call call) {
    sheaf_diagnostics *diagnostics = nullptr;
    sheaf_status status = call(&given_, &diagnostics);
    std::unique_ptr<sheaf_diagnostics, void (*)(sheaf_diagnostics *)> told(
        diagnostics, sheaf_diagnostics_release);
    if (resolving_.thrown)
      std::rethrow_exception(resolving_.thrown);
    if (status == SHEAF_NOT_COMPILED) {
      std::string message = sheaf_error_message();
      throw CompileError(message, diagnosticsOf(told.get()));
    }
    check(status);
    if (warnings)
      *warnings = diagnosticsOf(told.get());
  }

private:
  std::vector<sheaf_dim> dims_;
  std::vector<std::vector<const char *>> words_;
  std::vector<sheaf_vocabulary> vocabularies_;
  std::vector<sheaf_named_tensor> tensors_;
  std::vector<const char *> renames_, without_;
  Resolving resolving_;
  sheaf_compile_options given_{};
};

} // namespace detail

/// Throws CompileError for a source with errors, Error for all else. `warnings`, if it is not null,
/// is given what there is to say of a source without errors.
inline Model compile(const CompileOptions &options, std::vector<Diagnostic> *warnings = nullptr) {
  std::optional<Model> compiled; // lets it go when a resolver throws
  detail::CompileCall call(options);
  call(warnings, [&](const sheaf_compile_options *given, sheaf_diagnostics **diagnostics) {
    sheaf_model *model = nullptr;
    sheaf_status status = sheaf_compile(given, &model, diagnostics);
    if (status == SHEAF_OK)
      compiled.emplace(model);
    return status;
  });
  return *compiled;
}

/// What `sheaf explain` says: of a model, and, if it is given one, of a mini-batch.
struct Explanation {
  std::string text, json;
  std::string page; ///< HTML that needs no network; empty without a mini-batch
};

namespace detail {

inline Explanation explain(const CompileOptions &options, const sheaf_explain_options &what) {
  std::unique_ptr<sheaf_explanation, void (*)(sheaf_explanation *)> made(nullptr,
                                                                         sheaf_explanation_release);
  CompileCall call(options);
  call(nullptr, [&](const sheaf_compile_options *given, sheaf_diagnostics **diagnostics) {
    sheaf_explanation *explanation = nullptr;
    sheaf_status status = sheaf_explain(given, &what, &explanation, diagnostics);
    made.reset(explanation);
    return status;
  });
  return {sheaf_explanation_text(made.get()), sheaf_explanation_json(made.get()),
          sheaf_explanation_page(made.get())};
}

} // namespace detail

/// Throws as compile() does.
inline Explanation explain(const CompileOptions &options) {
  sheaf_explain_options what{};
  what.size = sizeof what;
  return detail::explain(options, what);
}
/// The batch is of a model that the same options gave; the session has its weights.
inline Explanation explain(const CompileOptions &options, Session &session, Batch &batch,
                           std::uint32_t repetitions = 0) {
  sheaf_explain_options what{};
  what.size = sizeof what;
  what.session = session.get();
  what.batch = batch.get();
  what.repetitions = repetitions;
  return detail::explain(options, what);
}

/// Writes an artefact, as `sheaf build` does.
inline void save(const Model &model, const std::string &path) {
  check(sheaf_model_save(model.get(), path.c_str()));
}

} // namespace sheaf

#endif // SHEAF_COMPILER_HPP
