//===- built.h - Models that a program built --------------------*- C++ -*-===//
//
// What was called of include/sheaf/builder.h, in order, as plain data: libsheaf_runtime notes it
// (runtime/api/build.cpp), and libsheaf_compiler calls its ModelBuilder with it whenever it is
// compiled. So nothing is opened to build, and one model is compiled any number of times.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_COMPILE_BUILT_H
#define SHEAF_RUNTIME_COMPILE_BUILT_H

#include "runtime/model/dtypes.h"
#include "sheaf/builder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sheaf::compile {

/// The forms. Of each kind of node the number is that of its step, from 1; 0 is none.
namespace form {

struct TypeNumber {
  uint32_t step = 0;
};
struct PatternNumber {
  uint32_t step = 0;
};
struct ExprNumber {
  uint32_t step = 0;
};
struct StatementNumber {
  uint32_t step = 0;
};

using Names = std::vector<std::string>;

struct Extent {
  sheaf_extent_kind kind;
  int64_t number;
  std::string name;
  ExprNumber expr;
};
struct Argument {
  std::string name;
  ExprNumber value;
};
struct Parameter {
  std::string name; ///< or a pattern
  PatternNumber pattern;
  TypeNumber type;
};

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

struct TensorType {
  rt::DType element;
  std::vector<Extent> extents;
};
struct TokenType {
  std::string vocabulary;
};
struct TokensType {
  std::string vocabulary;
  std::vector<Extent> extents;
};
struct HostType {
  sheaf_kind kind; ///< SHEAF_INT, SHEAF_FLOAT or SHEAF_BOOL
};
struct ListType {
  TypeNumber element;
  std::optional<Extent> length;
};
struct TupleType {
  std::vector<TypeNumber> elements;
};
struct FunctionType {
  std::vector<TypeNumber> params;
  TypeNumber result;
};
struct NamedType {
  std::string name;
  std::vector<TypeNumber> args;
  std::string file;
};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

struct Wildcard {};
struct Binding {
  std::string name;
};
struct IntPattern {
  int64_t value;
};
struct BoolPattern {
  bool value;
};
struct TuplePattern {
  std::vector<PatternNumber> elements;
};
struct ConstructorPattern {
  std::string constructor;
  std::vector<PatternNumber> args;
  std::string file;
};
struct ListPattern {
  std::vector<PatternNumber> elements;
};
struct ConsPattern {
  PatternNumber head, tail;
};

//===----------------------------------------------------------------------===//
// Expressions and statements
//===----------------------------------------------------------------------===//

struct Int {
  int64_t value;
};
struct Float {
  double value;
};
struct Bool {
  bool value;
};
struct Text {
  std::string value;
};
struct Name {
  std::string name;
};
struct Unary {
  sheaf_unary op;
  ExprNumber operand;
};
struct Binary {
  sheaf_binary op;
  ExprNumber lhs, rhs;
};
struct Call {
  ExprNumber callee;
  std::vector<Argument> args;
};
struct Field {
  ExprNumber base;
  std::string name;
};
struct IndexItem {
  ExprNumber index, begin, end; ///< without an index a slice
};
struct Index {
  ExprNumber base;
  std::vector<IndexItem> items;
};
struct List {
  std::vector<ExprNumber> elements;
};
struct Tuple {
  std::vector<ExprNumber> elements;
};
struct Block {
  std::vector<StatementNumber> statements;
  ExprNumber result;
};
struct If {
  ExprNumber condition, then, otherwise;
};
struct Arm {
  PatternNumber pattern;
  ExprNumber guard, body;
};
struct Match {
  ExprNumber scrutinee;
  std::vector<Arm> arms;
};
struct Lambda {
  std::vector<Parameter> params;
  ExprNumber body;
};

struct Let {
  PatternNumber pattern;
  ExprNumber value;
  TypeNumber type;
};
struct Check {
  ExprNumber condition;
  std::optional<std::string> message;
};
struct Run {
  ExprNumber call;
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

struct Use {
  std::string file, as;
};
struct Dim {
  std::string name;
  ExprNumber value;
  Names config;
};
struct Constructor {
  std::string name;
  std::vector<std::pair<std::string, TypeNumber>> fields;
};
struct Data {
  std::string name;
  std::vector<Constructor> constructors;
  Names typeParams;
};
struct Param {
  std::string name;
  TypeNumber type;
  std::string initializer;
  std::vector<Argument> args;
  Names stored;
};
struct Fn {
  std::string name;
  std::vector<Parameter> params;
  TypeNumber result;
  ExprNumber body;
  Names typeParams;
  TypeNumber emits;
};
struct Constant {
  std::string name;
  ExprNumber value;
  TypeNumber type;
  Names config, stored;
};
/// What is declared up to LayerEnd is the layer's. There are no layers between them.
struct Layer {
  std::string name;
  Names dims;
};
struct LayerEnd {};
using ConfigValue = std::variant<std::monostate, bool, double, std::string>;
struct ConfigCheck {
  Names config;
  std::vector<ConfigValue> values;
  std::string message;
  std::optional<ConfigValue> absent;
};

} // namespace form

using Form =
    std::variant<form::TensorType, form::TokenType, form::TokensType, form::HostType,
                 form::ListType, form::TupleType, form::FunctionType, form::NamedType,
                 form::Wildcard, form::Binding, form::IntPattern, form::BoolPattern,
                 form::TuplePattern, form::ConstructorPattern, form::ListPattern, form::ConsPattern,
                 form::Int, form::Float, form::Bool, form::Text, form::Name, form::Unary,
                 form::Binary, form::Call, form::Field, form::Index, form::List, form::Tuple,
                 form::Block, form::If, form::Match, form::Lambda, form::Let, form::Check,
                 form::Run, form::Use, form::Dim, form::Data, form::Param, form::Fn, form::Constant,
                 form::Layer, form::LayerEnd, form::ConfigCheck>;

struct Built {
  struct Place {
    uint32_t file = 0; ///< among `files`
    uint32_t line = 1, column = 1, endLine = 1, endColumn = 2;
  };
  struct Step {
    Place at;
    Form form;
  };
  struct File {
    std::string name;
    std::optional<std::string> text; ///< if it was given
  };

  std::vector<File> files; ///< the first is what the builder is called
  std::vector<Step> steps;

  const std::string &name() const { return files.front().name; }
};

} // namespace sheaf::compile

#endif // SHEAF_RUNTIME_COMPILE_BUILT_H
