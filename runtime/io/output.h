//===- output.h - Values as JSON lines --------------------------*- C++ -*-===//
//
// The inverse of jsonl.h: docs/data.md has the form of every type.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_OUTPUT_H
#define SHEAF_RUNTIME_IO_OUTPUT_H

#include "runtime/io/vocab.h"
#include "runtime/model/members.h"
#include "runtime/model/model.h"
#include "runtime/model/value.h"

#include <functional>
#include <string>
#include <vector>

namespace sheaf::io {

/// Writes values of any type, iteratively: memory grows with their depth, machine stack does not.
class JsonValueWriter {
public:
  /// Finds the tensor of type `type` that stands in `slots`: Session::tensor for results, or
  /// inputTensors() for inputs.
  using TensorAccess = std::function<rt::TensorView(uint32_t type, const rt::Slot *slots)>;

  /// `vocabularies` may be null: then tokens are written as numbers. All must outlive this.
  JsonValueWriter(const rt::TypeTable &types, TensorAccess tensors,
                  const Vocabularies *vocabularies = nullptr);

  /// Appends a value, without a line break.
  void append(std::string &out, uint32_t type, const rt::Slot *slots);

  /// Appends what became of an instance: its result, or of one that emits an object of both.
  void appendOutcome(std::string &out, const rt::EntryDesc &entry, const rt::Slot *slots);

  /// Appends an instance's arguments as an object, in the form that readJsonl reads.
  void appendArgs(std::string &out, const rt::EntryDesc &entry, const rt::Slot *args);

  /// Access to tensors of inputs (HostTensor::inputSlot).
  static TensorAccess inputTensors(const rt::TypeTable &types);

private:
  /// A composite whose `members` are still to be written.
  struct Frame {
    rt::Members members;
    const char *closing;
    bool first = true;
  };
  void begin(std::string &out, uint32_t type, const rt::Slot *slots);
  void appendTensor(std::string &out, uint32_t type, const rt::Slot *slots);
  void appendRow(std::string &out, uint32_t type, const rt::TensorView &tensor, const uint8_t *row,
                 int64_t count);
  void appendToken(std::string &out, const Vocabulary *vocabulary, int64_t id);

  const rt::TypeTable &types_;
  TensorAccess tensors_;
  std::vector<int64_t> slots_;                   ///< by type
  std::vector<const Vocabulary *> vocabularies_; ///< by type
  std::vector<Frame> frames_;
};

/// The shortest decimal that reads back as the same number; "NaN", "Infinity" and "-Infinity" in
/// quotes, which JSON has no numbers for.
void appendNumber(std::string &out, double value);
void appendNumber(std::string &out, float value);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_OUTPUT_H
