//===- Diagnostics.h - Errors, warnings and notes -------------*- C++ -*-===//
//
// Errors, warnings and notes about the files of a model, collected and then rendered for people.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_DIAGNOSTICS_H
#define SHEAF_COMPILER_FRONTEND_DIAGNOSTICS_H

#include "compiler/frontend/Source.h"

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

enum class Severity { Error, Warning, Note };
/// `error`, `warning`, `note`.
std::string_view severityName(Severity severity);

/// A second place that a diagnostic points at ("the '(' was opened here").
struct DiagnosticNote {
  SourceRange range;
  std::string message;
};

/// One finding. `help` holds the likely fix, or is empty. Messages are lower-case phrases without
/// a final full stop; names and tokens of the program stand in 'single quotes'.
struct Diagnostic {
  Severity severity = Severity::Error;
  SourceRange range;
  std::string message;
  std::string help;
  std::vector<DiagnosticNote> notes;

  Diagnostic &withHelp(std::string text) {
    help = std::move(text);
    return *this;
  }
  Diagnostic &withNote(SourceRange where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
  }
};

/// Collects the diagnostics of one run over a model and the files that it uses.
///
/// After `maxErrors` errors further ones are counted but not kept, and the rendering ends with
/// "too many errors"; `tooManyErrors()` tells a phase that it may stop. The reference returned by
/// `error`, `warning` and `note` stays valid as long as this object and serves to add a help text
/// or notes:
///
///     diags.error(range, "expected 'f32[4]'").withHelp("...").withNote(other, "...");
class Diagnostics {
public:
  explicit Diagnostics(const SourceFile &source, size_t maxErrors = 20)
      : source(source), maxErrors(maxErrors) {}

  Diagnostic &error(SourceRange range, std::string message, std::string help = {});
  Diagnostic &warning(SourceRange range, std::string message, std::string help = {});
  Diagnostic &note(SourceRange range, std::string message, std::string help = {});

  /// Takes what another run over the source has found.
  void take(const std::deque<Diagnostic> &findings, size_t errors);

  bool hasErrors() const { return errors != 0; }
  /// All errors reported, those beyond the limit included.
  size_t errorCount() const { return errors; }
  bool tooManyErrors() const { return errors > maxErrors; }

  /// How far the reporting has come. `forgetSince` takes back what was reported from there on, and
  /// ends the references to it: for what is tried in vain.
  struct Mark {
    size_t kept, errors;
  };
  Mark mark() const { return {kept.size(), errors}; }
  void forgetSince(Mark mark);

  /// What was kept, as it is rendered.
  std::vector<const Diagnostic *> inSourceOrder() const;
  /// What was kept, in the order of reporting.
  const std::deque<Diagnostic> &all() const { return kept; }
  const SourceFile &file() const { return source; }

  /// Everything as text, in source order: `file:line:col: error: message`, the source line with
  /// tabs expanded, a `^~~~` line, then the help and the notes. With `colour`, ANSI escapes.
  std::string render(bool colour = false) const;
  /// One diagnostic as `render` prints it.
  std::string render(const Diagnostic &diagnostic, bool colour = false) const;

private:
  Diagnostic &add(Severity severity, SourceRange range, std::string message, std::string help);

  const SourceFile &source;
  size_t maxErrors;
  size_t errors = 0;
  std::deque<Diagnostic> kept;
  Diagnostic dropped;
};

/// How the language writes a function without a name, for who wrote one in another way.
inline constexpr std::string_view lambdaForm = "a lambda is written |x| body";

/// What to write instead of a word of other languages (`for`, `return`); empty for other words.
std::string_view foreignWordHelp(std::string_view word);
/// What to write instead of a method of other languages' tensors (`item`); empty for other names.
std::string_view foreignMethodHelp(std::string_view name);
/// The same of functions that other libraries have.
std::string_view foreignFunctionHelp(std::string_view name);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_DIAGNOSTICS_H
