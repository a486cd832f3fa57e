//===- ProgramGenMatch.cpp - Patterns of Programs -------------------------===//
//
// A match becomes a decision tree that tests each part of the value at most once on a path. An arm
// that several paths reach is generated once, as a function of its own, unless it is small.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerWalk.h"
#include "compiler/frontend/ProgramGenImpl.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Patterns that always match
//===----------------------------------------------------------------------===//

void ProgramGenerator::bindVariable(const typed::Variable &variable, Value value) {
  frame->values[&variable] = value;
  if (!variable.dimSymbol.empty() && value.getType().isInteger(64))
    frame->dims[variable.dimSymbol] = known(value);
}

void ProgramGenerator::bindPattern(const typed::Pattern &pattern, Value value) {
  bindOpened(value, pattern.opened);
  switch (pattern.kind) {
  case typed::PatternKind::Bind:
    bindVariable(*pattern.variable, value);
    return;
  case typed::PatternKind::Tuple:
    for (size_t i = 0; i < pattern.args.size(); ++i)
      bindPattern(*pattern.args[i], get(value, static_cast<unsigned>(i)));
    return;
  case typed::PatternKind::Constructor: {
    // The only constructor: its fields are the results of a match with one arm.
    auto data = cast<ir::DataType>(value.getType());
    auto decl = SymbolTable::lookupNearestSymbolFrom<ir::DataOp>(*module, data.getName());
    auto ctor = cast<ir::CtorAttr>(decl.getCtors()[pattern.constructor]);
    SmallVector<Type> fields(ctor.getFieldTypes().getAsValueRange<TypeAttr>());
    auto match = ir::MatchOp::create(
        b, fields, value, ArrayRef<int64_t>{static_cast<int64_t>(pattern.constructor)}, 1u);
    Block &block = match.getArms()[0].emplaceBlock();
    for (Type field : fields)
      block.addArgument(field, b.getLoc());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&block);
      ir::YieldOp::create(b, block.getArguments());
    }
    for (size_t i = 0; i < pattern.args.size(); ++i)
      bindPattern(*pattern.args[i], match.getResult(static_cast<unsigned>(i)));
    return;
  }
  case typed::PatternKind::Cons: {
    // A list of known length.
    int64_t count = 0;
    const typed::Pattern *rest = &pattern;
    for (; rest->kind == typed::PatternKind::Cons; rest = rest->args[1], ++count)
      if (rest->args[0]->kind != typed::PatternKind::Wildcard)
        bindPattern(*rest->args[0],
                    ir::ListGetOp::create(b, cast<ir::ListType>(value.getType()).getElement(),
                                          value, constInt(count)));
    if (rest->kind == typed::PatternKind::Bind)
      bindPattern(*rest,
                  ir::ListSliceOp::create(b, value, constInt(count), ir::LenOp::create(b, value)));
    return;
  }
  default:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Decision trees
//===----------------------------------------------------------------------===//

/// A part of the matched value. Parts are numbered; 0 is the whole.
struct Part {
  enum Kind { Whole, Field, Head, Tail } kind = Whole;
  unsigned parent = 0;
  unsigned index = 0;
  bool used = false; ///< something binds or tests it
};

struct ProgramGenerator::Decision {
  // A leaf: binds, asks the guard if there is one, and gives the arm's body.
  const typed::MatchArm *arm = nullptr;
  unsigned armIndex = 0;
  std::vector<std::pair<const typed::Pattern *, unsigned>> bindings;
  std::unique_ptr<Decision> otherwise; ///< where the guard does not hold

  // A test of a part.
  typed::PatternKind test = typed::PatternKind::Wildcard;
  TypeRef type = nullptr; ///< of the part
  unsigned part = 0;
  struct Case {
    int64_t head = 0;
    std::vector<unsigned> fields; ///< parts
    std::unique_ptr<Decision> next;
  };
  std::vector<Case> cases;
  std::unique_ptr<Decision> rest; ///< null if the cases are all there are
};

struct ProgramGenerator::MatchBuilder {
  struct Row {
    const typed::MatchArm *arm;
    unsigned armIndex;
    std::vector<std::pair<const typed::Pattern *, unsigned>> tests;
    std::vector<std::pair<const typed::Pattern *, unsigned>> bindings;
  };

  std::vector<Part> parts;
  std::vector<unsigned> uses; ///< of each arm
  size_t nodes = 0;
  static constexpr size_t mostNodes = 20000;

  unsigned newPart(Part::Kind kind, unsigned parent, unsigned index) {
    parts.push_back({kind, parent, index, false});
    return static_cast<unsigned>(parts.size() - 1);
  }

  /// Moves what always matches from the tests to the bindings; takes tuples apart.
  void simplify(Row &row) {
    for (size_t i = 0; i < row.tests.size();) {
      auto [pattern, part] = row.tests[i];
      bool binds = pattern->kind == typed::PatternKind::Bind ||
                   (pattern->kind == typed::PatternKind::Tuple && !pattern->opened.empty());
      if (binds) {
        row.bindings.emplace_back(pattern, part);
        markUsed(part);
      }
      if (pattern->kind == typed::PatternKind::Tuple) {
        row.tests.erase(row.tests.begin() + static_cast<ptrdiff_t>(i));
        std::vector<std::pair<const typed::Pattern *, unsigned>> fields;
        for (unsigned k = 0; k < pattern->args.size(); ++k)
          fields.emplace_back(pattern->args[k], fieldOf(part, k));
        row.tests.insert(row.tests.begin() + static_cast<ptrdiff_t>(i), fields.begin(),
                         fields.end());
      } else if (pattern->kind == typed::PatternKind::Wildcard ||
                 pattern->kind == typed::PatternKind::Bind) {
        row.tests.erase(row.tests.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  /// The part that is a tuple's field: rows share it.
  unsigned fieldOf(unsigned part, unsigned index) {
    for (unsigned i = part + 1; i < parts.size(); ++i)
      if (parts[i].kind == Part::Field && parts[i].parent == part && parts[i].index == index)
        return i;
    return newPart(Part::Field, part, index);
  }

  void markUsed(unsigned part) {
    while (!parts[part].used) {
      parts[part].used = true;
      part = parts[part].parent;
    }
  }

  std::unique_ptr<Decision> build(std::vector<Row> rows) {
    if (rows.empty() || ++nodes > mostNodes)
      return nullptr;
    for (Row &row : rows)
      simplify(row);
    auto decision = std::make_unique<Decision>();
    Row &first = rows.front();
    if (first.tests.empty()) {
      decision->arm = first.arm;
      decision->armIndex = first.armIndex;
      decision->bindings = first.bindings;
      ++uses[first.armIndex];
      if (first.arm->guard) {
        rows.erase(rows.begin());
        decision->otherwise = build(std::move(rows));
      }
      return decision;
    }
    auto [sample, part] = first.tests.front();
    markUsed(part);
    decision->test =
        sample->kind == typed::PatternKind::Nil ? typed::PatternKind::Cons : sample->kind;
    decision->part = part;
    decision->type = sample->type;
    // Heads in the order they are first written; the sample's column decides which rows stay.
    auto testOf = [&, part = part](const Row &row) -> const typed::Pattern * {
      for (const auto &[pattern, at] : row.tests)
        if (at == part)
          return pattern;
      return nullptr;
    };
    auto headOf = [](const typed::Pattern &pattern) -> int64_t {
      switch (pattern.kind) {
      case typed::PatternKind::Constructor:
        return pattern.constructor;
      case typed::PatternKind::Cons:
        return 1;
      case typed::PatternKind::Nil:
        return 0;
      default:
        return pattern.value;
      }
    };
    std::vector<int64_t> heads;
    for (const Row &row : rows)
      if (const typed::Pattern *pattern = testOf(row)) {
        int64_t head = headOf(*pattern);
        if (std::find(heads.begin(), heads.end(), head) == heads.end())
          heads.push_back(head);
      }
    size_t all = 0;
    switch (decision->test) {
    case typed::PatternKind::Constructor:
      all = sample->type->data->constructors.size();
      break;
    case typed::PatternKind::Bool:
    case typed::PatternKind::Cons:
      all = 2;
      break;
    default:
      break;
    }
    for (int64_t head : heads) {
      Decision::Case one;
      one.head = head;
      size_t arity = decision->test == typed::PatternKind::Constructor
                         ? sample->type->data->constructors[static_cast<size_t>(head)].fields.size()
                     : decision->test == typed::PatternKind::Cons && head == 1 ? 2
                                                                               : 0;
      for (unsigned k = 0; k < arity; ++k)
        one.fields.push_back(newPart(decision->test == typed::PatternKind::Constructor ? Part::Whole
                                     : k == 0                                          ? Part::Head
                                                                                       : Part::Tail,
                                     part, k));
      std::vector<Row> kept;
      for (const Row &row : rows) {
        const typed::Pattern *pattern = testOf(row);
        if (pattern && headOf(*pattern) != head)
          continue;
        Row next = row;
        if (pattern) {
          auto at = std::find_if(next.tests.begin(), next.tests.end(),
                                 [&](const auto &test) { return test.first == pattern; });
          at = next.tests.erase(at);
          if (!pattern->opened.empty())
            next.bindings.emplace_back(pattern, part);
          std::vector<std::pair<const typed::Pattern *, unsigned>> fields;
          for (unsigned k = 0; k < arity; ++k)
            fields.emplace_back(pattern->args[k], one.fields[k]);
          next.tests.insert(at, fields.begin(), fields.end());
        }
        kept.push_back(std::move(next));
      }
      one.next = build(std::move(kept));
      decision->cases.push_back(std::move(one));
    }
    if (heads.size() != all) {
      std::vector<Row> kept;
      for (Row &row : rows)
        if (!testOf(row))
          kept.push_back(std::move(row));
      decision->rest = build(std::move(kept));
    }
    return decision;
  }
};

//===----------------------------------------------------------------------===//
// Generation
//===----------------------------------------------------------------------===//

struct ProgramGenerator::MatchState {
  MatchBuilder builder;
  std::vector<Value> values; ///< of parts
  Type type;
  std::map<unsigned, const typed::LambdaExpr *> shared; ///< arms that became functions
};

namespace {

/// Whether generating an expression again costs less than a call.
bool isSmall(const typed::Expr &expr) {
  unsigned count = 0;
  typed::walk(&expr, [&](const typed::Expr &) { ++count; });
  return count <= 6;
}

} // namespace

Value ProgramGenerator::genMatch(const typed::MatchExpr &expr) {
  MatchState state;
  state.type = mlirType(expr.type);
  Value scrutinee = gen(*expr.scrutinee);
  if (stopped)
    return placeholder(state.type);
  state.builder.newPart(Part::Whole, 0, 0);
  state.builder.parts[0].used = true;
  state.builder.uses.resize(expr.arms.size());
  std::vector<MatchBuilder::Row> rows;
  for (unsigned i = 0; i < expr.arms.size(); ++i)
    rows.push_back({&expr.arms[i], i, {{expr.arms[i].pattern, 0}}, {}});
  std::unique_ptr<Decision> decision = state.builder.build(std::move(rows));
  if (state.builder.nodes > MatchBuilder::mostNodes)
    return refuse(state.type, "the patterns of this match need too many tests",
                  "match in two steps");
  for (unsigned i = 0; i < expr.arms.size(); ++i) {
    if (state.builder.uses[i] < 2 || isSmall(*expr.arms[i].body))
      continue;
    typed::LambdaExpr &lambda = sharedArms.emplace_back();
    lambda.range = expr.arms[i].body->range;
    lambda.body = expr.arms[i].body;
    lambda.resultType = expr.type;
    state.shared[i] = &lambda;
  }
  state.values.resize(state.builder.parts.size());
  state.values[0] = scrutinee;
  return emitDecision(state, *decision);
}

Value ProgramGenerator::emitDecision(MatchState &state, const Decision &decision) {
  if (stopped)
    return placeholder(state.type);
  return decision.arm ? emitLeaf(state, decision) : emitSwitch(state, decision);
}

Value ProgramGenerator::emitLeaf(MatchState &state, const Decision &decision) {
  auto partValue = [&](auto &&self, unsigned index) -> Value {
    if (!state.values[index] && state.builder.parts[index].kind == Part::Field)
      return get(self(self, state.builder.parts[index].parent), state.builder.parts[index].index);
    return state.values[index];
  };
  for (const auto &[pattern, part] : decision.bindings) {
    Value value = partValue(partValue, part);
    bindOpened(value, pattern->opened);
    if (pattern->kind == typed::PatternKind::Bind)
      bindVariable(*pattern->variable, value);
  }
  auto body = [&]() -> Value {
    if (auto it = state.shared.find(decision.armIndex); it != state.shared.end())
      // An arm is no call of the source: it goes on with the key around it.
      return callClosure(makeClosure(*it->second), {}, {}, state.type, frame->key);
    return genAs(*decision.arm->body, state.type);
  };
  if (!decision.arm->guard)
    return body();
  At at(*this, decision.arm->guard->range);
  return genBranches(gen(*decision.arm->guard), state.type, body,
                     [&] { return emitDecision(state, *decision.otherwise); });
}

Value ProgramGenerator::emitSwitch(MatchState &state, const Decision &decision) {
  auto partValue = [&](auto &&self, unsigned index) -> Value {
    if (!state.values[index] && state.builder.parts[index].kind == Part::Field)
      return get(self(self, state.builder.parts[index].parent), state.builder.parts[index].index);
    return state.values[index];
  };
  Value value = partValue(partValue, decision.part);
  auto caseFor = [&](int64_t head) -> const Decision::Case * {
    for (const Decision::Case &one : decision.cases)
      if (one.head == head)
        return &one;
    return nullptr;
  };
  auto emitCase = [&](int64_t head) {
    const Decision::Case *one = caseFor(head);
    return emitDecision(state, one ? *one->next : *decision.rest);
  };
  switch (decision.test) {
  case typed::PatternKind::Bool:
    return genBranches(value, state.type, [&] { return emitCase(1); }, [&] { return emitCase(0); });
  case typed::PatternKind::Cons: {
    // A branch that cannot be taken may not even have fitting shapes.
    const Dim *extent = types.resolve(decision.type)->length();
    std::optional<int64_t> count = extent ? staticDim(*extent) : std::nullopt;
    if (count == 0)
      return emitCase(0);
    Value length = ir::LenOp::create(b, value);
    auto nonEmpty = [&]() -> Value {
      if (const Decision::Case *one = caseFor(1)) {
        unsigned head = one->fields[0], tail = one->fields[1];
        if (state.builder.parts[head].used)
          state.values[head] = ir::ListGetOp::create(
              b, cast<ir::ListType>(value.getType()).getElement(), value, constInt(0));
        if (state.builder.parts[tail].used)
          state.values[tail] = ir::ListSliceOp::create(b, value, constInt(1), length);
      }
      return emitCase(1);
    };
    if (count > 0)
      return nonEmpty();
    Value empty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, length, constInt(0));
    return genBranches(empty, state.type, [&] { return emitCase(0); }, nonEmpty);
  }
  case typed::PatternKind::Int: {
    // First which case it is, then a balanced tree of branches: a long match is not nested deeply.
    size_t count = decision.cases.size();
    if (count == 1) {
      Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                         constInt(decision.cases[0].head));
      return genBranches(
          same, state.type, [&] { return emitCase(decision.cases[0].head); },
          [&] { return emitDecision(state, *decision.rest); });
    }
    Value index = constInt(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                         constInt(decision.cases[i].head));
      index = arith::SelectOp::create(b, same, constInt(static_cast<int64_t>(i)), index);
    }
    return choose(index, 0, count, state.type, [&](size_t i) {
      return emitDecision(state, i < count ? *decision.cases[i].next : *decision.rest);
    });
  }
  case typed::PatternKind::Constructor: {
    std::vector<int64_t> heads;
    for (const Decision::Case &one : decision.cases)
      heads.push_back(one.head);
    auto data = cast<ir::DataType>(value.getType());
    auto decl = SymbolTable::lookupNearestSymbolFrom<ir::DataOp>(*module, data.getName());
    auto match = ir::MatchOp::create(b, TypeRange{state.type}, value, heads,
                                     static_cast<unsigned>(heads.size() + (decision.rest ? 1 : 0)));
    for (size_t i = 0; i < match.getArms().size(); ++i) {
      RegionScope scope(*this);
      Block &block = match.getArms()[i].emplaceBlock();
      b.setInsertionPointToStart(&block);
      Value result;
      if (i < heads.size()) {
        auto ctor = cast<ir::CtorAttr>(decl.getCtors()[static_cast<unsigned>(heads[i])]);
        size_t k = 0;
        for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
          state.values[decision.cases[i].fields[k++]] = block.addArgument(field, b.getLoc());
        result = emitDecision(state, *decision.cases[i].next);
      } else {
        result = emitDecision(state, *decision.rest);
      }
      ir::YieldOp::create(b, coerce(result, state.type));
    }
    return match.getResult(0);
  }
  default:
    return placeholder(state.type);
  }
}

} // namespace sheaf
