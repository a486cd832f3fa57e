//===- AstPrinter.cpp - Syntax trees as source text -----------------------===//

#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Operators.h"

#include <fmt/format.h>

#include <string_view>

namespace sheaf {

namespace {

/// What would be longer is broken: before constructors, and after the '=' of a function.
constexpr size_t lineWidth = 100;

std::string_view nameOf(HostTypeKind host) {
  switch (host) {
  case HostTypeKind::Int:
    return "int";
  case HostTypeKind::Float:
    return "float";
  case HostTypeKind::Bool:
    return "bool";
  }
  return "int";
}

/// Forms that would swallow what follows them, or read badly as operands.
bool takesParenthesesAsOperand(const Expr &expr) {
  return expr.is<LambdaExpr>() || expr.is<IfExpr>() || expr.is<MatchExpr>() || expr.is<BlockExpr>();
}

Precedence precedenceOf(const Expr &expr) {
  if (const auto *binary = expr.as<BinaryExpr>())
    return infoOf(binary->op).precedence;
  if (expr.is<UnaryExpr>())
    return precedenceOfUnary;
  return takesParenthesesAsOperand(expr) ? lowestPrecedence : precedenceOfPostfix;
}

/// Whether an expression prints on one line.
bool isFlat(const Expr &expr) {
  if (expr.is<BlockExpr>() || expr.is<IfExpr>() || expr.is<MatchExpr>())
    return false;
  bool flat = true;
  forEachChild(expr, [&](const Expr &child) { flat = flat && isFlat(child); });
  return flat;
}

class Printer {
public:
  void module(const Module &module) {
    const Decl *previous = nullptr;
    for (const Decl *decl : module.decls) {
      separate(previous, *decl);
      this->decl(*decl);
      out += '\n';
      previous = decl;
    }
  }

  void decl(const Decl &decl) {
    switch (decl.kind) {
    case DeclKind::Use:
      return useDecl(decl.to<UseDecl>());
    case DeclKind::Dim:
      return dimDecl(decl.to<DimDecl>());
    case DeclKind::Data:
      return dataDecl(decl.to<DataDecl>());
    case DeclKind::Param:
      return paramDecl(decl.to<ParamDecl>());
    case DeclKind::Fn:
      return fnDecl(decl.to<FnDecl>());
    case DeclKind::Let:
      return letDecl(decl.to<LetDecl>());
    case DeclKind::Layer:
      return layerDecl(decl.to<LayerDecl>());
    case DeclKind::Check:
      return checkDecl(decl.to<CheckDecl>());
    }
  }

  /// An expression in a place that takes operators from `context` on.
  void expr(const Expr &expr, int context = lowestPrecedence) {
    if (precedenceOf(expr) < context) {
      out += '(';
      bareExpr(expr);
      out += ')';
    } else {
      bareExpr(expr);
    }
  }

  void pattern(const Pattern &pattern) {
    switch (pattern.kind) {
    case PatternKind::Wildcard:
      out += '_';
      return;
    case PatternKind::Binding:
      out += pattern.to<BindingPattern>().name;
      return;
    case PatternKind::Int:
      out += fmt::to_string(pattern.to<IntPattern>().value);
      return;
    case PatternKind::Bool:
      out += pattern.to<BoolPattern>().value ? "true" : "false";
      return;
    case PatternKind::Tuple:
      return patterns('(', pattern.to<TuplePattern>().elements, ')');
    case PatternKind::List:
      return patterns('[', pattern.to<ListPattern>().elements, ']');
    case PatternKind::Constructor:
      qualifier(pattern.to<ConstructorPattern>().file);
      out += pattern.to<ConstructorPattern>().name.name;
      if (pattern.to<ConstructorPattern>().hasArgList)
        patterns('(', pattern.to<ConstructorPattern>().args, ')');
      return;
    case PatternKind::Cons:
      consOperand(*pattern.to<ConsPattern>().head);
      out += " :: ";
      this->pattern(*pattern.to<ConsPattern>().tail);
      return;
    case PatternKind::Error:
      out += "<error>";
      return;
    }
  }

  void type(const TypeExpr &type) {
    switch (type.kind) {
    case TypeExprKind::Tensor: {
      const auto &tensor = type.to<TensorTypeExpr>();
      out += rt::dtypeName(tensor.element);
      // Bare `bool` would be the host type.
      if (!tensor.dims.empty() || tensor.element == ElemKind::Bool)
        dims(tensor.dims);
      return;
    }
    case TypeExprKind::Token: {
      const auto &token = type.to<TokenTypeExpr>();
      out += "token";
      if (token.vocabulary)
        out += fmt::format("<{}>", token.vocabulary->name);
      if (token.dims)
        dims(*token.dims);
      return;
    }
    case TypeExprKind::Host:
      out += nameOf(type.to<HostTypeExpr>().host);
      return;
    case TypeExprKind::List:
      out += "list<";
      this->type(*type.to<ListTypeExpr>().element);
      out += '>';
      if (const auto &length = type.to<ListTypeExpr>().length)
        dims({*length});
      return;
    case TypeExprKind::Tuple:
      return types('(', type.to<TupleTypeExpr>().elements, ')');
    case TypeExprKind::Function:
      types('(', type.to<FunctionTypeExpr>().params, ')');
      out += " -> ";
      this->type(*type.to<FunctionTypeExpr>().result);
      return;
    case TypeExprKind::Named:
      qualifier(type.to<NamedTypeExpr>().file);
      out += type.to<NamedTypeExpr>().name.name;
      if (!type.to<NamedTypeExpr>().args.empty())
        types('<', type.to<NamedTypeExpr>().args, '>');
      return;
    case TypeExprKind::Error:
      out += "<error>";
      return;
    }
  }

  std::string out;

private:
  void qualifier(const std::optional<Identifier> &file) {
    if (file)
      out += file->name + '.';
  }

  void newline() { out += fmt::format("\n{:{}}", "", 2 * indentation); }

  template <typename Range, typename PrintElement>
  void commaSeparated(const Range &range, PrintElement print) {
    bool first = true;
    for (const auto &element : range) {
      if (!first)
        out += ", ";
      first = false;
      print(element);
    }
  }

  /// A blank line between declarations, except between one-line ones of the same kind.
  void separate(const Decl *previous, const Decl &next) {
    bool isShort = next.kind != DeclKind::Fn && next.kind != DeclKind::Layer;
    if (previous && !(isShort && previous->kind == next.kind))
      out += '\n';
  }

  //===--------------------------------------------------------------------===//
  // Declarations
  //===--------------------------------------------------------------------===//

  void useDecl(const UseDecl &use) {
    out += "use ";
    stringLiteral(use.path);
    if (!use.name.name.empty())
      out += " as " + use.name.name;
  }

  void dimDecl(const DimDecl &dim) {
    out += "dim " + dim.name.name;
    if (dim.value || !dim.config.empty())
      out += " = ";
    configMembers(dim.config, dim.value != nullptr);
    if (dim.value)
      expr(*dim.value);
  }

  void configMembers(const std::vector<ConfigMember> &members, bool goesOn) {
    for (const ConfigMember &member : members) {
      out += "config ";
      stringLiteral(member.name);
      if (goesOn || &member != &members.back())
        out += " else ";
    }
  }

  void checkDecl(const CheckDecl &check) {
    auto value = [&](const CheckDecl::Value &one) {
      if (const auto *text = std::get_if<std::string>(&one.value))
        stringLiteral(*text);
      else if (const auto *number = std::get_if<double>(&one.value))
        out += fmt::format("{}", *number);
      else if (const auto *truth = std::get_if<bool>(&one.value))
        out += *truth ? "true" : "false";
      else
        out += "null";
    };
    out += "check ";
    configMembers(check.config, check.absent.has_value());
    if (check.absent)
      value(*check.absent);
    out += " == ";
    for (size_t i = 0; i < check.values.size(); ++i) {
      out += i ? " | " : "";
      value(check.values[i]);
    }
    if (!check.message.empty()) {
      out += ", ";
      stringLiteral(check.message);
    }
  }

  void dataDecl(const DataDecl &data) {
    size_t begin = out.size();
    dataDecl(data, /*multiline=*/false);
    if (out.size() - begin <= lineWidth)
      return;
    out.resize(begin);
    dataDecl(data, /*multiline=*/true);
  }

  void dataDecl(const DataDecl &data, bool multiline) {
    out += "data " + data.name.name;
    typeParams(data.typeParams);
    out += " =";
    bool first = true;
    for (const DataConstructor &constructor : data.constructors) {
      if (multiline)
        out += "\n  | ";
      else
        out += first ? " " : " | ";
      first = false;
      out += constructor.name.name;
      if (constructor.fields.empty())
        continue;
      out += '(';
      commaSeparated(constructor.fields, [&](const DataField &field) {
        out += field.name.name + ": ";
        type(*field.type);
      });
      out += ')';
    }
  }

  void paramDecl(const ParamDecl &param) {
    out += "param " + param.name.name + " : ";
    type(*param.type);
    out += " = " + param.init.name.name;
    if (!param.init.args.empty())
      args(param.init.args);
    storedNames(param.stored);
  }

  void storedNames(const StoredNames &stored) {
    for (size_t i = 0; i < stored.names.size(); ++i) {
      out += i == 0 ? " as " : " | ";
      stringLiteral(stored.names[i]);
    }
  }

  void fnDecl(const FnDecl &fn) {
    size_t begin = out.size();
    out += "fn " + fn.name.name;
    typeParams(fn.typeParams);
    out += '(';
    params(fn.params);
    out += ')';
    if (fn.result) {
      out += " -> ";
      type(*fn.result);
    }
    if (fn.emits) {
      out += " emits ";
      type(*fn.emits);
    }
    out += " =";
    size_t bodyBegin = out.size();
    out += ' ';
    expr(*fn.body);
    if (!isFlat(*fn.body) || out.size() - begin + 2 * indentation <= lineWidth)
      return;
    out.resize(bodyBegin);
    ++indentation;
    newline();
    expr(*fn.body);
    --indentation;
  }

  void letDecl(const LetDecl &let) {
    out += "let " + let.name.name;
    if (let.type) {
      out += ": ";
      type(*let.type);
    }
    out += " = ";
    configMembers(let.config, /*goesOn=*/true);
    expr(*let.value);
    storedNames(let.stored);
  }

  void layerDecl(const LayerDecl &layer) {
    out += "layer " + layer.name.name + "(";
    commaSeparated(layer.dimParams, [&](const Identifier &dim) { out += dim.name; });
    out += ") {";
    ++indentation;
    for (const Decl *member : layer.members) {
      newline();
      decl(*member);
    }
    --indentation;
    newline();
    out += '}';
  }

  void typeParams(const std::vector<Identifier> &params) {
    if (params.empty())
      return;
    out += '<';
    commaSeparated(params, [&](const Identifier &param) { out += param.name; });
    out += '>';
  }

  void params(const std::vector<FnParam> &params) {
    commaSeparated(params, [&](const FnParam &param) {
      pattern(*param.pattern);
      if (param.type) {
        out += ": ";
        type(*param.type);
      }
    });
  }

  //===--------------------------------------------------------------------===//
  // Types and patterns
  //===--------------------------------------------------------------------===//

  void dims(const std::vector<DimExpr> &dims) {
    out += '[';
    commaSeparated(dims, [&](const DimExpr &dim) {
      if (dim.isPack)
        out += '*';
      if (dim.expr)
        expr(*dim.expr, precedenceOfSums);
      else
        out += '?';
    });
    out += ']';
  }

  void types(char open, const std::vector<const TypeExpr *> &types, char close) {
    out += open;
    commaSeparated(types, [&](const TypeExpr *element) { type(*element); });
    out += close;
  }

  void patterns(char open, const std::vector<const Pattern *> &patterns, char close) {
    out += open;
    commaSeparated(patterns, [&](const Pattern *element) { pattern(*element); });
    out += close;
  }

  void consOperand(const Pattern &head) {
    if (!head.is<ConsPattern>())
      return pattern(head);
    out += '(';
    pattern(head);
    out += ')';
  }

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  void bareExpr(const Expr &e) {
    switch (e.kind) {
    case ExprKind::IntLiteral:
      out += fmt::to_string(e.to<IntLiteralExpr>().value);
      return;
    case ExprKind::FloatLiteral:
      return floatLiteral(e.to<FloatLiteralExpr>().value);
    case ExprKind::BoolLiteral:
      out += e.to<BoolLiteralExpr>().value ? "true" : "false";
      return;
    case ExprKind::StringLiteral:
      return stringLiteral(e.to<StringLiteralExpr>().value);
    case ExprKind::Name:
      out += e.to<NameExpr>().name;
      return;
    case ExprKind::Unary:
      out += e.to<UnaryExpr>().op == UnaryOp::Negate ? '-' : '!';
      expr(*e.to<UnaryExpr>().operand, precedenceOfUnary);
      return;
    case ExprKind::Binary:
      return binary(e.to<BinaryExpr>());
    case ExprKind::Call:
      expr(*e.to<CallExpr>().callee, precedenceOfPostfix);
      args(e.to<CallExpr>().args);
      return;
    case ExprKind::Field:
      expr(*e.to<FieldExpr>().base, precedenceOfPostfix);
      out += "." + e.to<FieldExpr>().field.name;
      return;
    case ExprKind::Index:
      return index(e.to<IndexExpr>());
    case ExprKind::List:
      return exprs('[', e.to<ListExpr>().elements, ']');
    case ExprKind::Tuple:
      return exprs('(', e.to<TupleExpr>().elements, ')');
    case ExprKind::Block:
      return block(e.to<BlockExpr>());
    case ExprKind::If:
      return conditional(e.to<IfExpr>());
    case ExprKind::Match:
      return match(e.to<MatchExpr>());
    case ExprKind::Lambda:
      out += '|';
      params(e.to<LambdaExpr>().params);
      out += "| ";
      expr(*e.to<LambdaExpr>().body);
      return;
    case ExprKind::Error:
      out += "<error>";
      return;
    }
  }

  void floatLiteral(double value) {
    std::string digits = fmt::format("{}", value);
    out += digits;
    if (digits.find_first_of(".e") == std::string::npos)
      out += ".0";
  }

  void stringLiteral(std::string_view value) {
    out += '"';
    for (char c : value) {
      if (c == '"' || c == '\\')
        out += '\\';
      if (c == '\n' || c == '\t')
        out += c == '\n' ? "\\n" : "\\t";
      else
        out += c;
    }
    out += '"';
  }

  void binary(const BinaryExpr &binary) {
    int own = infoOf(binary.op).precedence;
    bool leftTakesSame = own != precedenceOfCons && own != precedenceOfComparisons;
    bool rightTakesSame = own == precedenceOfCons;
    expr(*binary.lhs, leftTakesSame ? own : own + 1);
    out += fmt::format(" {} ", spellingOf(binary.op));
    expr(*binary.rhs, rightTakesSame ? own : own + 1);
  }

  void args(const std::vector<Argument> &args) {
    out += '(';
    commaSeparated(args, [&](const Argument &arg) {
      if (arg.name)
        out += arg.name->name + "=";
      expr(*arg.value);
    });
    out += ')';
  }

  void exprs(char open, const std::vector<const Expr *> &elements, char close) {
    out += open;
    commaSeparated(elements, [&](const Expr *element) { expr(*element); });
    out += close;
  }

  void index(const IndexExpr &index) {
    expr(*index.base, precedenceOfPostfix);
    out += '[';
    commaSeparated(index.items, [&](const IndexItem &item) {
      if (item.index)
        expr(*item.index);
      if (item.begin)
        expr(*item.begin);
      if (item.isSlice)
        out += ':';
      if (item.end)
        expr(*item.end);
    });
    out += ']';
  }

  void stmt(const Stmt &stmt) {
    if (stmt.kind == Stmt::Kind::Let) {
      out += "let ";
      pattern(*stmt.pattern);
      if (stmt.type) {
        out += ": ";
        type(*stmt.type);
      }
      out += " = ";
      expr(*stmt.value);
      return;
    }
    if (stmt.kind == Stmt::Kind::Check)
      out += "check ";
    expr(*stmt.value);
    if (stmt.message) {
      out += ", ";
      stringLiteral(*stmt.message);
    }
  }

  void block(const BlockExpr &block) {
    if (block.stmts.empty() && isFlat(*block.result)) {
      out += "{ ";
      expr(*block.result);
      out += " }";
      return;
    }
    out += '{';
    ++indentation;
    for (const Stmt &stmt : block.stmts) {
      newline();
      this->stmt(stmt);
    }
    newline();
    const auto *lambda = block.result->as<LambdaExpr>();
    // At the start of a line `||` would go on with the line before as an operator.
    expr(*block.result, lambda && lambda->params.empty() ? precedenceOfPostfix : lowestPrecedence);
    --indentation;
    newline();
    out += '}';
  }

  void conditional(const IfExpr &conditional) {
    out += "if ";
    expr(*conditional.condition);
    out += ' ';
    expr(*conditional.thenExpr);
    out += " else ";
    expr(*conditional.elseExpr);
  }

  void match(const MatchExpr &match) {
    out += "match ";
    expr(*match.scrutinee);
    out += " {";
    ++indentation;
    for (const MatchArm &arm : match.arms) {
      newline();
      pattern(*arm.pattern);
      if (arm.guard) {
        out += " if ";
        expr(*arm.guard);
      }
      out += " => ";
      expr(*arm.body);
    }
    --indentation;
    newline();
    out += '}';
  }

  size_t indentation = 0;
};

} // namespace

std::string printModule(const Module &module) {
  Printer printer;
  printer.module(module);
  return std::move(printer.out);
}

std::string printDecl(const Decl &decl) {
  Printer printer;
  printer.decl(decl);
  return std::move(printer.out);
}

std::string printExpr(const Expr &expr) {
  Printer printer;
  printer.expr(expr);
  return std::move(printer.out);
}

std::string printPattern(const Pattern &pattern) {
  Printer printer;
  printer.pattern(pattern);
  return std::move(printer.out);
}

std::string printType(const TypeExpr &type) {
  Printer printer;
  printer.type(type);
  return std::move(printer.out);
}

} // namespace sheaf
