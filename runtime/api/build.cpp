// Models that a program builds: types, patterns and expressions, noted as they come.
#include "runtime/api/build.h"

#include "runtime/api/compile.h"

#include <algorithm>
#include <atomic>

using namespace sheaf;
using namespace sheaf::api;
using namespace sheaf::compile;

namespace {

using Family = NewStep::Family;

/// What the parser accepts (maxNesting): whoever walks a tree may recurse. Expressions by
/// themselves are measured when a model is compiled.
constexpr uint32_t kMostNesting = 500;
/// Types and patterns that are shared again and again would be of any size when they are walked.
constexpr uint32_t kMostWrittenOut = 1 << 16;

uint32_t nextBuilderSerial() {
  static std::atomic<uint32_t> last{0};
  uint32_t serial = ++last;
  return serial ? serial : ++last; // ids are never 0
}

const char *nameOf(Family family) {
  switch (family) {
  case Family::Type:
    return "a type";
  case Family::Pattern:
    return "a pattern";
  case Family::Expr:
    return "an expression";
  case Family::Statement:
    return "a statement";
  case Family::Declaration:
    break;
  }
  return "a declaration";
}

/// Whether such a node stands in one place.
bool isOnce(Family family) { return family == Family::Expr || family == Family::Statement; }

} // namespace

sheaf_model_builder::sheaf_model_builder(std::string name) : serial(nextBuilderSerial()) {
  fileNumbers.emplace(name, 0);
  built.files.push_back({std::move(name), {}});
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

NewStep::NewStep(sheaf_model_builder &builder) : builder_(builder) {
  if (builder.isFinished)
    throw Invalid("the builder has finished: another one builds the next model");
}

NewStep::~NewStep() {
  if (!isAdded_)
    for (uint32_t part : parts_) // none of those that are used once was
      builder_.shapes[part - 1].isUsed = false;
}

uint32_t NewStep::use(uint64_t id, Family family, const char *what) {
  uint64_t number = id & UINT32_MAX;
  if (id == 0)
    throw Invalid(std::string(what) + " is missing: its id is 0");
  if (id >> 32 != builder_.serial || number == 0 || number > builder_.built.steps.size())
    throw Invalid(std::string(what) + " is no node of this builder");
  sheaf_model_builder::Shape &shape = builder_.shapes[number - 1];
  if (shape.family != family)
    throw Invalid(std::string(what) + " is " + nameOf(shape.family) + ", not " + nameOf(family));
  if (isOnce(family) && shape.isUsed) {
    const Built::Place &at = builder_.built.steps[number - 1].at;
    const std::string &file = builder_.built.files[at.file].name;
    std::string message = std::string(what) + " stands in the model already, and " +
                          nameOf(family) +
                          " stands in one place: build it for each, or name it with let";
    throw Invalid(file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                      message,
                  {file, at.line, at.column}, message);
  }
  parts_.push_back(static_cast<uint32_t>(number));
  shape.isUsed = true;
  return parts_.back();
}

form::TypeNumber NewStep::type(sheaf_built_type node, const char *what) {
  return {use(node.id, Family::Type, what)};
}
form::PatternNumber NewStep::pattern(sheaf_built_pattern node, const char *what) {
  return {use(node.id, Family::Pattern, what)};
}
form::ExprNumber NewStep::expr(sheaf_built_expr node, const char *what) {
  return {use(node.id, Family::Expr, what)};
}
form::StatementNumber NewStep::statement(sheaf_built_statement node, const char *what) {
  return {use(node.id, Family::Statement, what)};
}

Built::Place NewStep::placeOf(const sheaf_place *at) {
  if (!at)
    return {};
  std::string file = named(at->file, "the file of a place");
  int64_t endLine = at->end_line, endColumn = at->end_column;
  if (endLine == 0 && endColumn == 0) {
    endLine = at->line;
    endColumn = at->column < INT64_MAX ? at->column + 1 : at->column;
  }
  if (at->line < 1 || at->column < 1)
    throw Invalid("a place is at " + std::to_string(at->line) + ":" + std::to_string(at->column) +
                  ": lines and columns count from 1");
  if (std::pair(endLine, endColumn) < std::pair(at->line, at->column) || endColumn < 1)
    throw Invalid("a place ends before it begins");
  auto number = [](int64_t value) {
    return static_cast<uint32_t>(std::min<int64_t>(value, INT32_MAX));
  };
  auto known = builder_.fileNumbers.find(file);
  if (known == builder_.fileNumbers.end()) {
    auto next = static_cast<uint32_t>(builder_.built.files.size());
    builder_.built.files.push_back({file, {}});
    known = builder_.fileNumbers.emplace(std::move(file), next).first;
  }
  return {known->second, number(at->line), number(at->column), number(endLine), number(endColumn)};
}

uint64_t NewStep::add(Family family, Form form, const sheaf_place *at) {
  std::vector<Built::Step> &steps = builder_.built.steps;
  if (steps.size() == UINT32_MAX)
    throw Invalid("one builder makes no more than 4,294,967,295 nodes");
  sheaf_model_builder::Shape shape{family};
  uint64_t writtenOut = 1;
  for (uint32_t part : parts_) {
    const sheaf_model_builder::Shape &of = builder_.shapes[part - 1];
    shape.height = std::max(shape.height, of.height + 1);
    writtenOut += of.writtenOut;
  }
  if (family == Family::Type || family == Family::Pattern) {
    if (shape.height > kMostNesting)
      throw Invalid(std::string(nameOf(family)) + " is nested too deeply: at most " +
                    std::to_string(kMostNesting) + " levels are allowed");
    if (writtenOut > kMostWrittenOut)
      throw Invalid(std::string(nameOf(family)) + " is too large: written out it has more than " +
                    std::to_string(kMostWrittenOut) + " parts");
  }
  shape.writtenOut = static_cast<uint32_t>(std::min<uint64_t>(writtenOut, UINT32_MAX));
  Built::Place place = placeOf(at);
  if (builder_.shapes.size() > steps.size()) // no memory was left for a step
    builder_.shapes.pop_back();
  builder_.shapes.push_back(shape);
  steps.push_back({place, std::move(form)});
  isAdded_ = true;
  return uint64_t(builder_.serial) << 32 | steps.size();
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

std::vector<form::TypeNumber> NewStep::types(const sheaf_built_type *nodes, size_t count) {
  std::vector<form::TypeNumber> all;
  for (sheaf_built_type node : elements(nodes, count, "types"))
    all.push_back(type(node, "a type"));
  return all;
}

std::vector<form::PatternNumber> NewStep::patterns(const sheaf_built_pattern *nodes, size_t count) {
  std::vector<form::PatternNumber> all;
  for (sheaf_built_pattern node : elements(nodes, count, "patterns"))
    all.push_back(pattern(node, "a pattern"));
  return all;
}

std::vector<form::ExprNumber> NewStep::exprs(const sheaf_built_expr *nodes, size_t count) {
  std::vector<form::ExprNumber> all;
  for (sheaf_built_expr node : elements(nodes, count, "elements"))
    all.push_back(expr(node, "an element"));
  return all;
}

form::Extent NewStep::extent(const sheaf_extent &extent) {
  switch (extent.kind) {
  case SHEAF_EXTENT_UNKNOWN:
    return {SHEAF_EXTENT_UNKNOWN, 0, {}, {}};
  case SHEAF_EXTENT_NUMBER:
    return {SHEAF_EXTENT_NUMBER, extent.number, {}, {}};
  case SHEAF_EXTENT_NAME:
    return {SHEAF_EXTENT_NAME, 0, named(extent.name, "the name of an extent"), {}};
  case SHEAF_EXTENT_EXPR:
    return {SHEAF_EXTENT_EXPR, 0, {}, expr(extent.expr, "an extent")};
  case SHEAF_EXTENT_PACK:
    return {SHEAF_EXTENT_PACK, 0, named(extent.name, "the name of an extent"), {}};
  }
  throw Invalid("an extent's kind is " + std::to_string(extent.kind));
}

std::vector<form::Extent> NewStep::extents(const sheaf_extent *extents, size_t count) {
  std::vector<form::Extent> all;
  for (const sheaf_extent &one : elements(extents, count, "extents"))
    all.push_back(extent(one));
  return all;
}

std::vector<form::Argument> NewStep::arguments(const sheaf_built_argument *args, size_t count) {
  std::vector<form::Argument> all;
  for (const sheaf_built_argument &arg : elements(args, count, "args"))
    all.push_back({arg.name ? arg.name : "", expr(arg.value, "an argument")});
  return all;
}

std::vector<form::Parameter> NewStep::parameters(const sheaf_built_parameter *params,
                                                 size_t count) {
  std::vector<form::Parameter> all;
  for (const sheaf_built_parameter &param : elements(params, count, "params")) {
    if (!param.name == !param.pattern.id)
      throw Invalid(param.name ? "a parameter has a name and a pattern"
                               : "a parameter has neither a name nor a pattern");
    form::Parameter made{param.name ? param.name : "", {}, typeIfAny(param.type, "its type")};
    if (!param.name)
      made.pattern = pattern(param.pattern, "a parameter");
    all.push_back(std::move(made));
  }
  return all;
}

sheaf_status api::addStep(sheaf_model_builder *builder, Family family, const sheaf_place *at,
                          uint64_t *id, MakeForm make) {
  return guarded([&] {
    std::lock_guard lock(given(builder, "builder").mutex);
    given(id, "where the node goes");
    NewStep step(*builder);
    *id = step.add(family, make(step), at);
  });
}

namespace {

constexpr Family familyOf(const sheaf_built_type *) { return Family::Type; }
constexpr Family familyOf(const sheaf_built_pattern *) { return Family::Pattern; }
constexpr Family familyOf(const sheaf_built_expr *) { return Family::Expr; }
constexpr Family familyOf(const sheaf_built_statement *) { return Family::Statement; }

/// Adds what `make` makes, and gives its node.
template <typename Node>
sheaf_status build(sheaf_model_builder *builder, const sheaf_place *at, Node *node, MakeForm make) {
  return addStep(builder, familyOf(node), at, node ? &node->id : nullptr, make);
}

std::string orNone(const char *text) { return text ? text : ""; }

/// A member of an enumeration that counts from 0.
template <typename Enum> Enum memberOf(int32_t value, Enum last, const char *what) {
  if (value < 0 || value > static_cast<int32_t>(last))
    throw Invalid(std::string(what) + " is " + std::to_string(value));
  return static_cast<Enum>(value);
}

rt::DType dtypeOf(DLDataType type) {
  for (const rt::DTypeInfo &info : rt::kDTypes)
    if (type.code == info.dlpackCode && type.bits == info.dlpackBits && type.lanes == 1)
      return info.dtype;
  throw Invalid("tensors have no elements of DLDataType {" + std::to_string(type.code) + ", " +
                std::to_string(type.bits) + ", " + std::to_string(type.lanes) + "}");
}

} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

sheaf_status sheaf_build_tensor_type(sheaf_model_builder *builder, DLDataType element,
                                     const sheaf_extent *extents, size_t count,
                                     const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &step) {
    return form::TensorType{dtypeOf(element), step.extents(extents, count)};
  });
}

sheaf_status sheaf_build_token_type(sheaf_model_builder *builder, const char *vocabulary,
                                    const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &) { return form::TokenType{orNone(vocabulary)}; });
}

sheaf_status sheaf_build_tokens_type(sheaf_model_builder *builder, const char *vocabulary,
                                     const sheaf_extent *extents, size_t count,
                                     const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &step) {
    return form::TokensType{orNone(vocabulary), step.extents(extents, count)};
  });
}

sheaf_status sheaf_build_host_type(sheaf_model_builder *builder, int32_t kind,
                                   const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &) {
    return form::HostType{memberOf(kind, SHEAF_BOOL, "the kind of a host type")};
  });
}

sheaf_status sheaf_build_list_type(sheaf_model_builder *builder, sheaf_built_type element,
                                   const sheaf_extent *length, const sheaf_place *at,
                                   sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &step) {
    form::ListType list{step.type(element, "the type of elements"), {}};
    if (length)
      list.length = step.extent(*length);
    return list;
  });
}

sheaf_status sheaf_build_tuple_type(sheaf_model_builder *builder, const sheaf_built_type *elements,
                                    size_t count, const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type,
               [&](NewStep &step) { return form::TupleType{step.types(elements, count)}; });
}

sheaf_status sheaf_build_function_type(sheaf_model_builder *builder, const sheaf_built_type *params,
                                       size_t count, sheaf_built_type result, const sheaf_place *at,
                                       sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &step) {
    return form::FunctionType{step.types(params, count), step.type(result, "the result")};
  });
}

sheaf_status sheaf_build_named_type(sheaf_model_builder *builder, const char *name,
                                    const sheaf_built_type *args, size_t count, const char *file,
                                    const sheaf_place *at, sheaf_built_type *type) {
  return build(builder, at, type, [&](NewStep &step) {
    return form::NamedType{&given(name, "name"), step.types(args, count), orNone(file)};
  });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

sheaf_status sheaf_build_wildcard(sheaf_model_builder *builder, const sheaf_place *at,
                                  sheaf_built_pattern *pattern) {
  return build(builder, at, pattern, [&](NewStep &) { return form::Wildcard{}; });
}

sheaf_status sheaf_build_binding(sheaf_model_builder *builder, const char *name,
                                 const sheaf_place *at, sheaf_built_pattern *pattern) {
  return build(builder, at, pattern,
               [&](NewStep &) { return form::Binding{&given(name, "name")}; });
}

sheaf_status sheaf_build_int_pattern(sheaf_model_builder *builder, int64_t value,
                                     const sheaf_place *at, sheaf_built_pattern *pattern) {
  return build(builder, at, pattern, [&](NewStep &) { return form::IntPattern{value}; });
}

sheaf_status sheaf_build_bool_pattern(sheaf_model_builder *builder, int32_t value,
                                      const sheaf_place *at, sheaf_built_pattern *pattern) {
  return build(builder, at, pattern, [&](NewStep &) { return form::BoolPattern{value != 0}; });
}

sheaf_status sheaf_build_tuple_pattern(sheaf_model_builder *builder,
                                       const sheaf_built_pattern *elements, size_t count,
                                       const sheaf_place *at, sheaf_built_pattern *pattern) {
  return build(builder, at, pattern,
               [&](NewStep &step) { return form::TuplePattern{step.patterns(elements, count)}; });
}

sheaf_status sheaf_build_constructor_pattern(sheaf_model_builder *builder, const char *constructor,
                                             const sheaf_built_pattern *args, size_t count,
                                             const char *file, const sheaf_place *at,
                                             sheaf_built_pattern *pattern) {
  return build(builder, at, pattern, [&](NewStep &step) {
    return form::ConstructorPattern{&given(constructor, "constructor"), step.patterns(args, count),
                                    orNone(file)};
  });
}

sheaf_status sheaf_build_list_pattern(sheaf_model_builder *builder,
                                      const sheaf_built_pattern *elements, size_t count,
                                      const sheaf_place *at, sheaf_built_pattern *pattern) {
  return build(builder, at, pattern,
               [&](NewStep &step) { return form::ListPattern{step.patterns(elements, count)}; });
}

sheaf_status sheaf_build_cons_pattern(sheaf_model_builder *builder, sheaf_built_pattern head,
                                      sheaf_built_pattern tail, const sheaf_place *at,
                                      sheaf_built_pattern *pattern) {
  return build(builder, at, pattern, [&](NewStep &step) {
    return form::ConsPattern{step.pattern(head, "head"), step.pattern(tail, "tail")};
  });
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

sheaf_status sheaf_build_int(sheaf_model_builder *builder, int64_t value, const sheaf_place *at,
                             sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &) { return form::Int{value}; });
}

sheaf_status sheaf_build_float(sheaf_model_builder *builder, double value, const sheaf_place *at,
                               sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &) { return form::Float{value}; });
}

sheaf_status sheaf_build_bool(sheaf_model_builder *builder, int32_t value, const sheaf_place *at,
                              sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &) { return form::Bool{value != 0}; });
}

sheaf_status sheaf_build_text(sheaf_model_builder *builder, const char *value,
                              const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &) { return form::Text{&given(value, "value")}; });
}

sheaf_status sheaf_build_name(sheaf_model_builder *builder, const char *name, const sheaf_place *at,
                              sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &) { return form::Name{&given(name, "name")}; });
}

sheaf_status sheaf_build_unary(sheaf_model_builder *builder, int32_t op, sheaf_built_expr operand,
                               const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::Unary{memberOf(op, SHEAF_NOT, "op"), step.expr(operand, "operand")};
  });
}

sheaf_status sheaf_build_binary(sheaf_model_builder *builder, int32_t op, sheaf_built_expr lhs,
                                sheaf_built_expr rhs, const sheaf_place *at,
                                sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::Binary{memberOf(op, SHEAF_MATMUL, "op"), step.expr(lhs, "lhs"),
                        step.expr(rhs, "rhs")};
  });
}

sheaf_status sheaf_build_call(sheaf_model_builder *builder, sheaf_built_expr callee,
                              const sheaf_built_argument *args, size_t count, const sheaf_place *at,
                              sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::Call{step.expr(callee, "callee"), step.arguments(args, count)};
  });
}

sheaf_status sheaf_build_field(sheaf_model_builder *builder, sheaf_built_expr base,
                               const char *name, const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::Field{step.expr(base, "base"), &given(name, "name")};
  });
}

sheaf_status sheaf_build_index(sheaf_model_builder *builder, sheaf_built_expr base,
                               const sheaf_built_index *items, size_t count, const sheaf_place *at,
                               sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    form::Index index{step.expr(base, "base"), {}};
    for (const sheaf_built_index &item : elements(items, count, "items")) {
      if (item.index.id && (item.begin.id || item.end.id))
        throw Invalid("an item is an index and a slice");
      index.items.push_back({step.exprIfAny(item.index, "an index"),
                             step.exprIfAny(item.begin, "the begin of a slice"),
                             step.exprIfAny(item.end, "the end of a slice")});
    }
    return index;
  });
}

sheaf_status sheaf_build_list(sheaf_model_builder *builder, const sheaf_built_expr *elements,
                              size_t count, const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr,
               [&](NewStep &step) { return form::List{step.exprs(elements, count)}; });
}

sheaf_status sheaf_build_tuple(sheaf_model_builder *builder, const sheaf_built_expr *elements,
                               size_t count, const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr,
               [&](NewStep &step) { return form::Tuple{step.exprs(elements, count)}; });
}

sheaf_status sheaf_build_let(sheaf_model_builder *builder, sheaf_built_pattern pattern,
                             sheaf_built_expr value, sheaf_built_type type, const sheaf_place *at,
                             sheaf_built_statement *statement) {
  return build(builder, at, statement, [&](NewStep &step) {
    return form::Let{step.pattern(pattern, "pattern"), step.expr(value, "value"),
                     step.typeIfAny(type, "type")};
  });
}

sheaf_status sheaf_build_check(sheaf_model_builder *builder, sheaf_built_expr condition,
                               const char *message, const sheaf_place *at,
                               sheaf_built_statement *statement) {
  return build(builder, at, statement, [&](NewStep &step) {
    form::Check check{step.expr(condition, "condition"), {}};
    if (message)
      check.message = message;
    return check;
  });
}

sheaf_status sheaf_build_run(sheaf_model_builder *builder, sheaf_built_expr call,
                             const sheaf_place *at, sheaf_built_statement *statement) {
  return build(builder, at, statement,
               [&](NewStep &step) { return form::Run{step.expr(call, "call")}; });
}

sheaf_status sheaf_build_block(sheaf_model_builder *builder,
                               const sheaf_built_statement *statements, size_t count,
                               sheaf_built_expr result, const sheaf_place *at,
                               sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    form::Block block;
    for (sheaf_built_statement node : elements(statements, count, "statements"))
      block.statements.push_back(step.statement(node, "a statement"));
    block.result = step.expr(result, "result");
    return block;
  });
}

sheaf_status sheaf_build_if(sheaf_model_builder *builder, sheaf_built_expr condition,
                            sheaf_built_expr then, sheaf_built_expr otherwise,
                            const sheaf_place *at, sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::If{step.expr(condition, "condition"), step.expr(then, "then"),
                    step.expr(otherwise, "otherwise")};
  });
}

sheaf_status sheaf_build_match(sheaf_model_builder *builder, sheaf_built_expr scrutinee,
                               const sheaf_built_arm *arms, size_t count, const sheaf_place *at,
                               sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    form::Match match{step.expr(scrutinee, "scrutinee"), {}};
    for (const sheaf_built_arm &arm : elements(arms, count, "arms"))
      match.arms.push_back({step.pattern(arm.pattern, "an arm's pattern"),
                            step.exprIfAny(arm.guard, "an arm's guard"),
                            step.expr(arm.body, "an arm's body")});
    return match;
  });
}

sheaf_status sheaf_build_lambda(sheaf_model_builder *builder, const sheaf_built_parameter *params,
                                size_t count, sheaf_built_expr body, const sheaf_place *at,
                                sheaf_built_expr *expr) {
  return build(builder, at, expr, [&](NewStep &step) {
    return form::Lambda{step.parameters(params, count), step.expr(body, "body")};
  });
}
