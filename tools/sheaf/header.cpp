//===- header.cpp - A model's types as C++ --------------------------------===//
#include "tools/sheaf/header.h"

#include "runtime/io/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

namespace sheaf::tool {

namespace {

using rt::TypeKind;

/// Sorted.
constexpr const char *kKeywords[] = {"alignas",       "alignof",     "and",
                                     "and_eq",        "asm",         "auto",
                                     "bitand",        "bitor",       "bool",
                                     "break",         "case",        "catch",
                                     "char",          "char16_t",    "char32_t",
                                     "char8_t",       "class",       "co_await",
                                     "co_return",     "co_yield",    "compl",
                                     "concept",       "const",       "const_cast",
                                     "consteval",     "constexpr",   "constinit",
                                     "continue",      "decltype",    "default",
                                     "delete",        "do",          "double",
                                     "dynamic_cast",  "else",        "enum",
                                     "explicit",      "export",      "extern",
                                     "false",         "float",       "for",
                                     "friend",        "goto",        "if",
                                     "inline",        "int",         "long",
                                     "mutable",       "namespace",   "new",
                                     "noexcept",      "not",         "not_eq",
                                     "nullptr",       "operator",    "or",
                                     "or_eq",         "private",     "protected",
                                     "public",        "register",    "reinterpret_cast",
                                     "requires",      "return",      "short",
                                     "signed",        "sizeof",      "static",
                                     "static_assert", "static_cast", "struct",
                                     "switch",        "template",    "this",
                                     "thread_local",  "throw",       "true",
                                     "try",           "typedef",     "typeid",
                                     "typename",      "union",       "unsigned",
                                     "using",         "virtual",     "void",
                                     "volatile",      "wchar_t",     "while",
                                     "xor",           "xor_eq"};

/// Macros of C's headers, and of compilers, whose names look like names of a program.
constexpr const char *kMacros[] = {"EOF",   "HUGE_VAL", "INFINITY", "NAN",   "NULL",   "assert",
                                   "errno", "linux",    "stderr",   "stdin", "stdout", "unix"};

/// Names for C++: made of letters, digits and single underscores, no keyword or macro, each only
/// once.
class Names {
public:
  /// A name that was not given before.
  std::string fresh(const std::string &wanted) {
    std::string name;
    for (char c : wanted) {
      char plain = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      if (plain != '_' || (!name.empty() && name.back() != '_'))
        name += plain;
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])))
      name = "x" + name;
    while (name.size() > 1 && name.back() == '_')
      name.pop_back();
    auto isIn = [&](const auto &words) {
      return std::find(std::begin(words), std::end(words), name) != std::end(words);
    };
    if (isIn(kKeywords) || isIn(kMacros))
      name += "_";
    std::string unique = name;
    for (int i = 2; !taken_.insert(unique).second; ++i)
      unique = name + (name.back() == '_' ? "" : "_") + std::to_string(i);
    return unique;
  }
  void reserve(const std::string &name) { taken_.insert(name); }

private:
  std::set<std::string> taken_;
};

class Header {
public:
  explicit Header(const rt::Model &model) : model_(model), types_(model.types) {
    for (const char *name : {"add", "result", "Arguments", "Result", "sheaf", "std"})
      names_.reserve(name);
    for (uint32_t type : model.entry.argTypes)
      collect(type);
    if (model.entry.emits) {
      both_.emplace(types_, model.entry);
      for (const char *name : {"emitted", "Emitted"})
        names_.reserve(name);
    }
    collect(model.entry.resultType);
    dataNames_.resize(types_.data.size());
    for (uint32_t data : order_)
      dataNames_[data] = names_.fresh(types_.data[data].name);
  }

  std::string text(const std::string &source) {
    Names outer;
    outer.reserve("sheaf");
    outer.reserve("std");
    outer.reserve("main");
    std::string space = outer.fresh(model_.name);
    std::string guard = "SHEAF_MODEL_" + space;
    std::transform(guard.begin(), guard.end(), guard.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    // A name with a line's end in it would end the comment.
    std::string shown = source;
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return std::iscntrl(c); }, '?');
    out_ = fmt::format("// Types of {0}, written by sheaf build --emit-header.\n"
                       "#ifndef {1}\n#define {1}\n\n"
                       "#include <sheaf/sheaf.hpp>\n\nnamespace {2} {{\n\n",
                       shown, guard, space);
    for (uint32_t data : order_)
      out_ += fmt::format("struct {};\n", dataNames_[data]);
    if (!order_.empty())
      out_ += '\n';
    for (uint32_t data : order_)
      appendData(data);
    appendEntry();
    out_ += fmt::format("\n}} // namespace {}\n\n#endif // {}\n", space, guard);
    return std::move(out_);
  }

private:
  /// Data types that can be reached, in order of being met; tuples and lists end, data are noted
  /// once, so this ends, too.
  void collect(uint32_t first) {
    std::vector<uint32_t> pending = {first};
    while (!pending.empty()) {
      uint32_t type = pending.back();
      pending.pop_back();
      const rt::TypeDesc &desc = types_.types[type];
      pending.insert(pending.end(), desc.children.begin(), desc.children.end());
      if (desc.kind != TypeKind::Data ||
          std::find(order_.begin(), order_.end(), desc.data) != order_.end())
        continue;
      order_.push_back(desc.data);
      for (const rt::CtorDesc &ctor : types_.data[desc.data].ctors)
        pending.insert(pending.end(), ctor.fieldTypes.begin(), ctor.fieldTypes.end());
    }
  }

  bool holdsData(uint32_t type) const {
    const rt::TypeDesc &desc = types_.types[type];
    return desc.kind == TypeKind::Data ||
           std::any_of(desc.children.begin(), desc.children.end(),
                       [&](uint32_t child) { return holdsData(child); });
  }

  static const char *elementName(rt::DType dtype) {
    switch (dtype) {
    case rt::DType::F32:
      return "float";
    case rt::DType::BF16:
    case rt::DType::F16:
      return "std::uint16_t";
    case rt::DType::I32:
      return "std::int32_t";
    case rt::DType::I64:
      return "std::int64_t";
    case rt::DType::Bool:
      break;
    }
    return "unsigned char";
  }

  /// `inside`: of another type. There data are boxed, for it may be the same type.
  std::string typeName(uint32_t type, bool inside) const {
    const rt::TypeDesc &desc = types_.types[type];
    switch (desc.kind) {
    case TypeKind::Int:
    case TypeKind::Token:
      return "std::int64_t";
    case TypeKind::Float:
      return "double";
    case TypeKind::Bool:
      return "bool";
    case TypeKind::Tensor:
      return fmt::format("sheaf::Array<{}>", elementName(desc.dtype));
    case TypeKind::List: {
      uint32_t element = desc.children[0];
      // std::vector<bool> has no elements that can be referred to.
      std::string name =
          types_.types[element].kind == TypeKind::Bool ? "unsigned char" : typeName(element, false);
      std::string list = fmt::format("std::vector<{}>", name);
      return inside && holdsData(element) ? fmt::format("sheaf::Box<{}>", list) : list;
    }
    case TypeKind::Tuple: {
      std::string parts;
      for (uint32_t child : desc.children)
        parts += (parts.empty() ? "" : ", ") + typeName(child, inside);
      return fmt::format("std::tuple<{}>", parts);
    }
    case TypeKind::Data:
      break;
    }
    return inside ? fmt::format("sheaf::Box<{}>", dataNames_[desc.data]) : dataNames_[desc.data];
  }

  /// The constructors' structs are not inside of the data type's: initialisers of their members
  /// would not be known there yet, and a constructor may have the name of another type.
  void appendData(uint32_t data) {
    const rt::DataDesc &desc = types_.data[data];
    const std::string &dataName = dataNames_[data];
    Names inner;
    inner.reserve("value");
    inner.reserve(dataName); // that would be a constructor of C++
    std::string aliases, alternatives;
    for (const rt::CtorDesc &ctor : desc.ctors) {
      std::string name = names_.fresh(dataName + "_" + ctor.name);
      aliases += fmt::format("  using {} = {};\n", inner.fresh(ctor.name), name);
      alternatives += (alternatives.empty() ? "" : ", ") + name;
      out_ += fmt::format("struct {} {{\n", name);
      Names members;
      for (const std::string &taken : dataNames_)
        members.reserve(taken);
      for (const char *taken : {"fields", "sheaf", "std"})
        members.reserve(taken);
      members.reserve(name);
      std::string tied;
      for (size_t i = 0; i < ctor.fieldTypes.size(); ++i) {
        std::string member = members.fresh(ctor.fieldNames[i].empty() ? fmt::format("field{}", i)
                                                                      : ctor.fieldNames[i]);
        tied += (tied.empty() ? "" : ", ") + member;
        appendMember(ctor.fieldTypes[i], member, /*inside=*/true);
      }
      out_ += fmt::format("  auto fields() {{ return std::tie({0}); }}\n"
                          "  auto fields() const {{ return std::tie({0}); }}\n}};\n",
                          tied);
    }
    out_ += fmt::format("/// {}\nstruct {} {{\n{}  std::variant<{}> value;\n}};\n\n",
                        io::dataDeclaration(types_, data), dataName, aliases, alternatives);
  }

  void appendEntry() {
    const rt::EntryDesc &entry = model_.entry;
    out_ += fmt::format("/// Of an instance of {}.\nstruct Arguments {{\n", entry.name);
    Names names;
    for (const std::string &taken : dataNames_)
      names.reserve(taken);
    for (const char *taken : {"sheaf", "std"})
      names.reserve(taken);
    std::string encoded;
    for (size_t i = 0; i < entry.argTypes.size(); ++i) {
      std::string name = names.fresh(entry.argNames[i]);
      appendMember(entry.argTypes[i], name, /*inside=*/false);
      encoded += fmt::format("{}\n             encoder.encode(arguments.{}, "
                             "batch.model().argumentType({}))",
                             i ? "," : "", name, i);
    }
    uint32_t result = entry.ownResult(types_);
    out_ += fmt::format(
        "}};\n\n/// {0}\nusing Result = {1};\n\n"
        "/// Adds an instance; random draws follow from `id`.\n"
        "inline void add(sheaf::Batch &batch, {3}const Arguments &arguments, std::int64_t id) {{\n"
        "  {3}sheaf::Encoder encoder(batch);\n  batch.add({{{2}}},\n            id);\n}}\n"
        "inline void add(sheaf::Batch &batch, const Arguments &arguments) {{\n"
        "  add(batch, arguments, static_cast<std::int64_t>(batch.size()));\n}}\n\n"
        "/// The result of an instance; throws sheaf::Error when it failed.\n"
        "inline Result result(const sheaf::Result &results, std::size_t instance) {{\n"
        "  return sheaf::Decoder::decode<Result>(results[instance]);\n}}\n",
        io::typeName(types_, result), typeName(result, false), encoded,
        encoded.empty() ? "[[maybe_unused]] " : "");
    if (both_)
      out_ += fmt::format(
          "\n/// {}\nusing Emitted = {};\n\n"
          "/// What an instance emitted; throws sheaf::Error when it failed.\n"
          "inline Emitted emitted(const sheaf::Result &results, std::size_t instance) {{\n"
          "  return sheaf::Decoder::decode<Emitted>(results.emitted(instance));\n}}\n",
          io::typeName(types_, both_->list), typeName(both_->list, false));
  }

  void appendMember(uint32_t type, const std::string &name, bool inside) {
    bool plain = types_.types[type].kind <= TypeKind::Token;
    out_ += fmt::format("  {} {}{}; ///< {}\n", typeName(type, inside), name, plain ? "{}" : "",
                        io::typeName(types_, type));
  }

  const rt::Model &model_;
  const rt::TypeTable &types_;
  Names names_;
  std::optional<rt::EmittingOutcome> both_; ///< of one that emits
  std::vector<uint32_t> order_;             ///< data types
  std::vector<std::string> dataNames_;
  std::string out_;
};

} // namespace

std::string cppHeader(const rt::Model &model, const std::string &source) {
  return Header(model).text(source);
}

} // namespace sheaf::tool
