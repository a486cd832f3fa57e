//===- artefact.h - A compiled model in a file ------------------*- C++ -*-===//
//
// What `sheaf build` writes: everything that a session needs, code included, and nothing of the
// compiler. format.h says what the file holds.
//
// Opening a file is safe, whatever its bytes are: all of it is checked before a page is made
// executable. Running what was opened is not: it is code, and whoever runs it trusts its author, as
// with a shared library. A file must not be changed while it is open (put a new one in its place by
// renaming).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_ARTEFACT_ARTEFACT_H
#define SHEAF_RUNTIME_ARTEFACT_ARTEFACT_H

#include "runtime/artefact/error.h"
#include "runtime/artefact/format.h"
#include "runtime/io/vocab.h"
#include "runtime/session/session.h"

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace sheaf::artefact {

/// Whether a file is to be read as an artefact: it begins as one, or is called so (`.sheafc`; one
/// that is damaged there is told so). False for others that cannot be read, and for pipes.
bool isArtefact(const std::string &path);
/// Whether text is an artefact that came where a source was looked for, such as from a pipe.
bool beginsAsArtefact(std::string_view text);

struct OpenOptions {
  /// The file's SHA-256 in hexadecimal digits, or empty: any file. Reads all of the file.
  std::string sha256;
  /// Whether weights are compared with their checksums: reads all of them. Everything else always
  /// is.
  bool checkWeights = true;
  /// Whose code is wanted; of several kinds the first that this machine can run.
  std::string backend = "cpu";
  /// Asked for, ends the reading by an io::CheckStopped.
  std::stop_token stop = {};
};

/// What a compiler made and was not written to a file. The sections are empty: the weights are
/// still to come.
struct Compiled {
  Description description;
  std::vector<uint8_t> image; ///< rt::LoadedCode::image()
};

/// An open artefact. Immutable; sessions share it and must not outlive it.
class Artefact {
public:
  /// Throws ArtefactError, and UserError when the machine refuses the memory.
  static std::unique_ptr<Artefact> open(const std::string &path, const OpenOptions &options = {});
  /// One without a file, of code for this machine. `setWeights` gives a session all parameters;
  /// what it throws comes out. Throws UserError when the machine refuses the memory.
  static std::unique_ptr<Artefact> make(Compiled compiled,
                                        const std::function<void(rt::Session &)> &setWeights);
  ~Artefact();
  /// Writes it to a file, which is complete or not there. Throws UserError.
  void save(const std::string &path) const;
  Artefact(const Artefact &) = delete;
  Artefact &operator=(const Artefact &) = delete;

  /// With code and weights: sessions of it need no others.
  const rt::Model &model() const { return description_.model; }
  const Description &description() const { return description_; }
  const rt::LoadedCode &code() const { return *code_; }
  /// Made anew by every call.
  io::Vocabularies vocabularies() const;

private:
  Artefact() = default;
  /// Gives the model the addresses of its functions, and one for training the native kernels.
  void setAddresses();

  std::string name_;
  int file_ = -1;
  std::span<const uint8_t> bytes_; ///< the file, mapped
  Description description_;
  rt::StoredWeights weights_;
  std::unique_ptr<rt::LoadedCode> code_;
};

/// Reads and checks a file's bytes as far as that is possible without running anything: what
/// Artefact::open() does before it maps code. Throws ArtefactError.
Description parse(std::span<const uint8_t> bytes, const OpenOptions &options = {});

/// What is wrong with a description that was read, as an ArtefactError.
void verify(const Description &description);

/// What stands before the sections of a file of so many bytes: the header and the description.
std::vector<uint8_t> encode(const Description &description, uint64_t fileBytes);

/// A model and its code without weights. `code` holds all functions of the model but native
/// kernels.
Description describe(const rt::Model &model, const rt::LoadedCode &code, const rt::Target &target,
                     std::string numerics, const io::Vocabularies &vocabularies,
                     std::string producer);

/// The parameters of a session in row layout, with zeros for padding.
std::vector<uint8_t> paramRows(const rt::Session &session);

/// A session's model with its weights as they were packed last, and its code.
struct Part {
  const rt::Session &session;
  const rt::LoadedCode &code;
  const rt::Target &target;
  std::string numerics;
};

/// Writes code for one kind of machine or several, which may differ in nothing but code. The file
/// is complete or not there. Throws UserError.
void write(const std::string &path, std::span<const Part> parts,
           const io::Vocabularies &vocabularies, const std::string &producer);

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_ARTEFACT_H
