// Every form of the C interface, by the function of ModelBuilder that makes it.
#include "compiler/api/built.h"
#include "compiler/frontend/Builder.h"
#include "compiler/frontend/Operators.h"

#include <iterator>

using namespace sheaf;
using namespace sheaf::compile;

namespace {

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

/// Switches without a default and their counts: what the language gets does not compile until the
/// interface has it, too.
UnaryOp opOf(sheaf_unary op) {
  switch (op) {
  case SHEAF_NEGATE:
    return UnaryOp::Negate;
  case SHEAF_NOT:
    break;
  }
  return UnaryOp::Not;
}

constexpr BinaryOp opOf(sheaf_binary op) {
  switch (op) {
  case SHEAF_OR:
    return BinaryOp::Or;
  case SHEAF_AND:
    return BinaryOp::And;
  case SHEAF_EQ:
    return BinaryOp::Eq;
  case SHEAF_NE:
    return BinaryOp::Ne;
  case SHEAF_LT:
    return BinaryOp::Lt;
  case SHEAF_LE:
    return BinaryOp::Le;
  case SHEAF_GT:
    return BinaryOp::Gt;
  case SHEAF_GE:
    return BinaryOp::Ge;
  case SHEAF_CONS:
    return BinaryOp::Cons;
  case SHEAF_ADD:
    return BinaryOp::Add;
  case SHEAF_SUB:
    return BinaryOp::Sub;
  case SHEAF_MUL:
    return BinaryOp::Mul;
  case SHEAF_DIV:
    return BinaryOp::Div;
  case SHEAF_MOD:
    return BinaryOp::Mod;
  case SHEAF_MATMUL:
    break;
  }
  return BinaryOp::MatMul;
}

constexpr bool hasEveryBinaryOp() {
  for (const BinaryOpInfo &info : binaryOps) {
    bool isThere = false;
    for (int op = SHEAF_OR; op <= SHEAF_MATMUL; ++op)
      isThere |= opOf(static_cast<sheaf_binary>(op)) == info.op;
    if (!isThere)
      return false;
  }
  return std::size(binaryOps) == SHEAF_MATMUL + 1;
}
static_assert(hasEveryBinaryOp());

HostTypeKind hostOf(sheaf_kind kind) {
  return kind == SHEAF_INT     ? HostTypeKind::Int
         : kind == SHEAF_FLOAT ? HostTypeKind::Float
                               : HostTypeKind::Bool;
}

/// Whether a kind of node has its form: an enumerator that is missing here does not compile.
constexpr bool hasForm(UnaryOp op) {
  switch (op) {
  case UnaryOp::Negate:
  case UnaryOp::Not:
    return true;
  }
  return false;
}
constexpr bool hasForm(HostTypeKind kind) {
  switch (kind) {
  case HostTypeKind::Int:
  case HostTypeKind::Float:
  case HostTypeKind::Bool:
    return true;
  }
  return false;
}
constexpr bool hasForm(TypeExprKind kind) {
  switch (kind) {
  case TypeExprKind::Tensor:
  case TypeExprKind::Token:
  case TypeExprKind::Host:
  case TypeExprKind::List:
  case TypeExprKind::Tuple:
  case TypeExprKind::Function:
  case TypeExprKind::Named:
    return true;
  case TypeExprKind::Error:
    break;
  }
  return false;
}
constexpr bool hasForm(PatternKind kind) {
  switch (kind) {
  case PatternKind::Wildcard:
  case PatternKind::Binding:
  case PatternKind::Int:
  case PatternKind::Bool:
  case PatternKind::Tuple:
  case PatternKind::Constructor:
  case PatternKind::List:
  case PatternKind::Cons:
    return true;
  case PatternKind::Error:
    break;
  }
  return false;
}
constexpr bool hasForm(ExprKind kind) {
  switch (kind) {
  case ExprKind::IntLiteral:
  case ExprKind::FloatLiteral:
  case ExprKind::BoolLiteral:
  case ExprKind::StringLiteral:
  case ExprKind::Name:
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Call:
  case ExprKind::Field:
  case ExprKind::Index:
  case ExprKind::List:
  case ExprKind::Tuple:
  case ExprKind::Block:
  case ExprKind::If:
  case ExprKind::Match:
  case ExprKind::Lambda:
    return true;
  case ExprKind::Error:
    break;
  }
  return false;
}
constexpr bool hasForm(Stmt::Kind kind) {
  switch (kind) {
  case Stmt::Kind::Let:
  case Stmt::Kind::Check:
  case Stmt::Kind::Do:
    return true;
  }
  return false;
}
constexpr bool hasForm(DeclKind kind) {
  switch (kind) {
  case DeclKind::Use:
  case DeclKind::Dim:
  case DeclKind::Data:
  case DeclKind::Param:
  case DeclKind::Fn:
  case DeclKind::Let:
  case DeclKind::Layer:
  case DeclKind::Check:
    return true;
  }
  return false;
}
static_assert(hasForm(UnaryOp::Not) && hasForm(HostTypeKind::Int) && hasForm(TypeExprKind::Named) &&
              hasForm(PatternKind::Cons) && hasForm(ExprKind::Call) && hasForm(Stmt::Kind::Do) &&
              hasForm(DeclKind::Check));

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Makes what the steps say with a ModelBuilder: an overload for each form.
class Replay {
public:
  using B = ModelBuilder;

  explicit Replay(const Built &built)
      : built_(built), b_(built.name()), nodes_(built.steps.size()) {
    for (const Built::File &file : built.files)
      if (file.text)
        b_.addText(file.name, *file.text);
  }

  SourceFile source(const FileResolver &resolver) && {
    while (next_ < built_.steps.size())
      step();
    return std::move(b_).finish(resolver);
  }

private:
  using Node = std::variant<std::monostate, B::T, B::P, B::E, Stmt>;

  void step() {
    size_t number = next_++;
    const Built::Step &step = built_.steps[number];
    nodes_[number] =
        std::visit([&](const auto &form) { return make(form, placeOf(step.at)); }, step.form);
  }

  BuildPlace placeOf(const Built::Place &at) const {
    return {built_.files[at.file].name, {at.line, at.column}, {at.endLine, at.endColumn}};
  }

  B::T get(form::TypeNumber type) const {
    return type.step ? std::get<B::T>(nodes_[type.step - 1]) : nullptr;
  }
  B::P get(form::PatternNumber pattern) const {
    return pattern.step ? std::get<B::P>(nodes_[pattern.step - 1]) : nullptr;
  }
  B::E get(form::ExprNumber expr) const {
    return expr.step ? std::get<B::E>(nodes_[expr.step - 1]) : nullptr;
  }
  Stmt get(form::StatementNumber statement) const {
    return std::get<Stmt>(nodes_[statement.step - 1]);
  }
  template <typename Number> auto all(const std::vector<Number> &numbers) const {
    std::vector<decltype(get(Number()))> nodes;
    for (Number number : numbers)
      nodes.push_back(get(number));
    return nodes;
  }
  B::Extent get(const form::Extent &extent) const {
    switch (extent.kind) {
    case SHEAF_EXTENT_NUMBER:
      return extent.number;
    case SHEAF_EXTENT_NAME:
      return extent.name;
    case SHEAF_EXTENT_EXPR:
      return get(extent.expr);
    case SHEAF_EXTENT_PACK:
      return B::Extent::pack(extent.name);
    case SHEAF_EXTENT_UNKNOWN:
      break;
    }
    return B::Extent::unknown();
  }
  std::vector<B::Extent> get(const std::vector<form::Extent> &extents) const {
    std::vector<B::Extent> got;
    for (const form::Extent &extent : extents)
      got.push_back(get(extent));
    return got;
  }
  std::vector<B::Arg> get(const std::vector<form::Argument> &args) const {
    std::vector<B::Arg> got;
    for (const form::Argument &arg : args)
      got.emplace_back(arg.name, get(arg.value));
    return got;
  }
  std::vector<B::Param> get(const std::vector<form::Parameter> &params) const {
    std::vector<B::Param> got;
    for (const form::Parameter &param : params)
      if (param.pattern.step)
        got.emplace_back(get(param.pattern), get(param.type));
      else
        got.emplace_back(param.name, get(param.type));
    return got;
  }

  // Types.
  Node make(const form::TensorType &type, BuildPlace at) {
    return b_.tensor(type.element, get(type.extents), at);
  }
  Node make(const form::TokenType &type, BuildPlace at) { return b_.token(type.vocabulary, at); }
  Node make(const form::TokensType &type, BuildPlace at) {
    return b_.tokens(get(type.extents), type.vocabulary, at);
  }
  Node make(const form::HostType &type, BuildPlace at) { return b_.host(hostOf(type.kind), at); }
  Node make(const form::ListType &type, BuildPlace at) {
    return type.length ? b_.listOf(get(type.element), get(*type.length), at)
                       : b_.listOf(get(type.element), at);
  }
  Node make(const form::TupleType &type, BuildPlace at) {
    return b_.tupleOf(all(type.elements), at);
  }
  Node make(const form::FunctionType &type, BuildPlace at) {
    return b_.functionOf(all(type.params), get(type.result), at);
  }
  Node make(const form::NamedType &type, BuildPlace at) {
    return b_.named(type.name, all(type.args), type.file, at);
  }

  // Patterns.
  Node make(const form::Wildcard &, BuildPlace at) { return b_.any(at); }
  Node make(const form::Binding &pattern, BuildPlace at) { return b_.bind(pattern.name, at); }
  Node make(const form::IntPattern &pattern, BuildPlace at) {
    return b_.matchNumber(pattern.value, at);
  }
  Node make(const form::BoolPattern &pattern, BuildPlace at) {
    return b_.matchTruth(pattern.value, at);
  }
  Node make(const form::TuplePattern &pattern, BuildPlace at) {
    return b_.matchTuple(all(pattern.elements), at);
  }
  Node make(const form::ConstructorPattern &pattern, BuildPlace at) {
    return b_.construct(pattern.constructor, all(pattern.args), pattern.file, at);
  }
  Node make(const form::ListPattern &pattern, BuildPlace at) {
    return b_.matchList(all(pattern.elements), at);
  }
  Node make(const form::ConsPattern &pattern, BuildPlace at) {
    return b_.cons(get(pattern.head), get(pattern.tail), at);
  }

  // Expressions.
  Node make(const form::Int &expr, BuildPlace at) { return b_.number(expr.value, at); }
  Node make(const form::Float &expr, BuildPlace at) { return b_.number(expr.value, at); }
  Node make(const form::Bool &expr, BuildPlace at) { return b_.truth(expr.value, at); }
  Node make(const form::Text &expr, BuildPlace at) { return b_.text(expr.value, at); }
  Node make(const form::Name &expr, BuildPlace at) { return b_.name(expr.name, at); }
  Node make(const form::Unary &expr, BuildPlace at) {
    return b_.unary(opOf(expr.op), get(expr.operand), at);
  }
  Node make(const form::Binary &expr, BuildPlace at) {
    return b_.binary(opOf(expr.op), get(expr.lhs), get(expr.rhs), at);
  }
  Node make(const form::Call &expr, BuildPlace at) {
    return b_.call(get(expr.callee), get(expr.args), at);
  }
  Node make(const form::Field &expr, BuildPlace at) {
    return b_.field(get(expr.base), expr.name, at);
  }
  Node make(const form::Index &expr, BuildPlace at) {
    std::vector<B::Index> items;
    for (const form::IndexItem &item : expr.items)
      items.push_back(item.index.step ? B::Index(get(item.index))
                                      : B::Index::slice(get(item.begin), get(item.end)));
    return b_.index(get(expr.base), items, at);
  }
  Node make(const form::List &expr, BuildPlace at) { return b_.list(all(expr.elements), at); }
  Node make(const form::Tuple &expr, BuildPlace at) { return b_.tuple(all(expr.elements), at); }
  Node make(const form::Block &expr, BuildPlace at) {
    return b_.block(all(expr.statements), get(expr.result), at);
  }
  Node make(const form::If &expr, BuildPlace at) {
    return b_.ifElse(get(expr.condition), get(expr.then), get(expr.otherwise), at);
  }
  Node make(const form::Match &expr, BuildPlace at) {
    std::vector<B::Arm> arms;
    for (const form::Arm &arm : expr.arms)
      arms.push_back({get(arm.pattern), get(arm.body), get(arm.guard)});
    return b_.match(get(expr.scrutinee), arms, at);
  }
  Node make(const form::Lambda &expr, BuildPlace at) {
    return b_.lambda(get(expr.params), get(expr.body), at);
  }

  // Statements.
  Node make(const form::Let &let, BuildPlace at) {
    return b_.let(get(let.pattern), get(let.value), get(let.type), at);
  }
  Node make(const form::Check &check, BuildPlace at) {
    return b_.check(get(check.condition), check.message, at);
  }
  Node make(const form::Run &run, BuildPlace at) { return b_.run(get(run.call), at); }

  // Declarations.
  Node make(const form::Use &use, BuildPlace at) {
    b_.use(use.file, use.as, at);
    return {};
  }
  Node make(const form::Dim &dim, BuildPlace at) {
    b_.dim(dim.name, get(dim.value), dim.config, at);
    return {};
  }
  Node make(const form::Data &data, BuildPlace at) {
    std::vector<B::Constructor> constructors;
    for (const form::Constructor &constructor : data.constructors) {
      B::Constructor &made = constructors.emplace_back();
      made.name = constructor.name;
      for (const auto &[name, type] : constructor.fields)
        made.fields.emplace_back(name, get(type));
    }
    b_.data(data.name, constructors, data.typeParams, at);
    return {};
  }
  Node make(const form::Param &param, BuildPlace at) {
    b_.param(param.name, get(param.type), param.initializer, get(param.args), param.stored, at);
    return {};
  }
  Node make(const form::Fn &fn, BuildPlace at) {
    b_.fn(fn.name, get(fn.params), get(fn.result), get(fn.body), {fn.typeParams, get(fn.emits)},
          at);
    return {};
  }
  Node make(const form::Constant &constant, BuildPlace at) {
    b_.constant(constant.name, get(constant.value), get(constant.type), constant.config,
                constant.stored, at);
    return {};
  }
  Node make(const form::Layer &layer, BuildPlace at) {
    auto members = [&] {
      while (!std::holds_alternative<form::LayerEnd>(built_.steps[next_].form))
        step();
    };
    b_.layer(layer.name, layer.dims, members, at);
    return {};
  }
  Node make(const form::LayerEnd &, BuildPlace) { return {}; }
  Node make(const form::ConfigCheck &check, BuildPlace at) {
    b_.checkConfig(check.config, check.values, check.message, check.absent, at);
    return {};
  }

  const Built &built_;
  B b_;
  std::vector<Node> nodes_; ///< that of each step; none of a declaration
  size_t next_ = 0;
};

} // namespace

SourceFile api::sourceOf(const Built &built, const FileResolver &resolver) {
  return Replay(built).source(resolver);
}
