//===- jsonl.h - Instances as JSON ------------------------------*- C++ -*-===//
//
// An instance is an object with a member for every parameter of the entry, or, when the entry has
// one parameter, its value alone. The JSON form of every type is in docs/data.md.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_JSONL_H
#define SHEAF_RUNTIME_IO_JSONL_H

#include "runtime/io/extents.h"
#include "runtime/io/formats.h"
#include "runtime/io/json.h"
#include "runtime/io/trees.h"
#include "runtime/io/vocab.h"
#include "runtime/model/model.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::io {

/// The constructors of a data type for values that may be absent: one without fields, one with one.
struct OptionalCtors {
  uint32_t absent, present;
  uint32_t field; ///< type of the present one's
};
std::optional<OptionalCtors> optionalCtors(const rt::TypeTable &types, uint32_t type);

/// Reads values of an entry's parameters. Nesting takes heap memory, never machine stack.
class JsonInstanceReader final : public InstanceReader {
public:
  /// What the context names must outlive this. Throws UserError when a vocabulary is missing.
  explicit JsonInstanceReader(const ReadContext &context);

  /// Its TextErrors have the JSON path of the field (TextError::field).
  const std::vector<rt::Slot> &read(std::string_view text) override;
  std::map<std::string, int64_t> ignored() const override { return ignored_; }

private:
  /// A list, tuple, constructor or object of parameters whose members are being read.
  struct Frame {
    /// Bare: the value of its only field stands for a constructor.
    enum Kind : uint8_t { List, Tuple, Positional, Named, Bare, Params } kind;
    uint32_t type;   ///< of the value (not Params)
    uint32_t ctor;   ///< Positional, Named, Bare
    uint32_t member; ///< the element or field being read, or read last
    uint32_t count;  ///< members begun
    size_t firstValue;
    size_t firstOrder; ///< Named, Params
  };
  struct CtorLayout {
    std::vector<int64_t> offsets; ///< of each field, and the total
  };

  void readOnce(std::string_view text);
  void run();
  void beginDocument();
  void beginValue(uint32_t type);
  void beginData(uint32_t type);
  void beginObject(uint32_t type);
  void pushBare(uint32_t type, uint32_t count);
  bool isConstructor(uint32_t type, std::string_view name) const;
  void beginConstructor(uint32_t type);
  void continueFrame();
  void continueNamed(Frame &frame);
  void ignoreMember();
  [[noreturn]] void failMissing(const Frame &frame, const std::string &name);
  void finishNamed(const Frame &frame);
  void finishBare(const Frame &frame);
  rt::Slot treeFromString(uint32_t type);
  void readTensor(uint32_t type, JsonEvent event);
  void readElements(uint32_t type, std::vector<int64_t> &extents);
  void appendElement(uint32_t type, JsonEvent event);
  void pushExtent(uint32_t type, size_t axis, int64_t extent);
  void checkLength(uint32_t list, int64_t count);
  void bindExtent(uint32_t type, const std::string &name, int64_t extent);
  int64_t tokenNumber(uint32_t type, JsonEvent event);
  int64_t integer(JsonEvent event);
  double real(JsonEvent event);

  const std::vector<std::string> &memberNames(const Frame &frame) const;
  const std::vector<uint32_t> &memberTypes(const Frame &frame) const;
  const CtorLayout &layout(const Frame &frame) const;
  std::string path() const;
  std::string fieldName() const;
  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void expected(const std::string &what, JsonEvent found) const;

  const rt::TypeTable &types_;
  const rt::EntryDesc &entry_;
  TokenReader &tokens_;
  SlotHeap &heap_;
  bool strict_;
  std::vector<int64_t> slots_;                       ///< by type
  std::vector<uint32_t> vocabs_;                     ///< by type: handle of its vocabulary
  std::vector<std::vector<CtorLayout>> ctorLayouts_; ///< by data type and constructor
  CtorLayout argLayout_;
  std::vector<std::optional<OptionalCtors>> optional_; ///< by type
  std::vector<std::unique_ptr<TreeBinding>> trees_;    ///< by type, made when needed

  JsonPull json_{""};
  ExtentBinder extents_;
  std::vector<Frame> frames_;
  std::vector<rt::Slot> values_;     ///< slots of the members read of all frames
  std::vector<uint32_t> order_;      ///< fields in the order read of all Named frames
  std::vector<int64_t> counts_;      ///< elements begun on each open axis of a tensor
  std::vector<uint8_t> elements_;    ///< of the tensor being read
  std::vector<std::string> unknown_; ///< members of the instance that is read
  std::map<std::string, int64_t> ignored_;
  std::vector<rt::Slot> args_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_JSONL_H
