//===- CheckerPatterns.cpp - Checking patterns ----------------------------===//

#include "compiler/frontend/CheckerPatterns.h"
#include "compiler/frontend/Exhaustive.h"

#include <fmt/format.h>

namespace sheaf {

typed::Pattern *PatternChecker::makePattern(typed::PatternKind kind, SourceRange range,
                                            TypeRef type) {
  typed::Pattern &pattern = storage.patterns.emplace_back();
  pattern.kind = kind;
  pattern.range = range;
  pattern.type = type;
  bool isList = kind == typed::PatternKind::Cons || kind == typed::PatternKind::Nil;
  if (const Dim *length = isList ? types.resolve(type)->length() : nullptr)
    pattern.length = dims.value(*length);
  return &pattern;
}

typed::Variable *PatternChecker::bindVariable(const std::string &name, TypeRef type,
                                              SourceRange range) {
  typed::Variable &variable = storage.variables.emplace_back();
  variable.name = name;
  variable.type = type;
  variable.range = range;
  TypeRef resolved = types.resolve(type);
  if (resolved->is(TypeKind::Int) || resolved->is(TypeKind::Variable)) {
    variable.dimSymbol = *dims.makeRigid(name).asSymbol();
    dims.mayBeNegative(variable.dimSymbol);
    context->opened.push_back(variable.dimSymbol);
  }
  context->locals.push_back({name, &variable});
  return &variable;
}

typed::Pattern *PatternChecker::checkPattern(const Pattern &pattern, TypeRef type) {
  std::set<std::string> names;
  return checkPattern(pattern, type, names);
}

typed::Pattern *PatternChecker::checkPattern(const Pattern &pattern, TypeRef type,
                                             std::set<std::string> &names) {
  using typed::PatternKind;
  type = types.resolve(type);
  auto wild = [&] { return makePattern(PatternKind::Wildcard, pattern.range, types.error()); };
  // An unknown type becomes what the pattern needs; any other must be that already.
  auto needs = [&](TypeRef wanted, const char *what) {
    if (isError(type))
      return false;
    if (types.subsume(type, wanted)) {
      type = types.resolve(type);
      return true;
    }
    diags.error(pattern.range, fmt::format("this pattern matches {}, but the value is '{}'", what,
                                           types.print(type)));
    return false;
  };
  // Names of a pattern that does not fit are bound all the same, so that their uses are known.
  auto bindAll = [&](const std::vector<const sheaf::Pattern *> &patterns) {
    for (const sheaf::Pattern *inner : patterns)
      checkPattern(*inner, types.error(), names);
  };

  switch (pattern.kind) {
  case sheaf::PatternKind::Error:
    ++state.errorPatterns;
    return wild();
  case sheaf::PatternKind::Wildcard:
    return makePattern(PatternKind::Wildcard, pattern.range, type);
  case sheaf::PatternKind::Binding: {
    const std::string &name = pattern.to<BindingPattern>().name;
    if (!names.insert(name).second)
      diags.error(pattern.range, fmt::format("'{}' is already the name of another part here", name),
                  "give the two different names");
    typed::Pattern *result = makePattern(PatternKind::Bind, pattern.range, type);
    result->variable = bindVariable(name, type, pattern.range);
    return result;
  }
  case sheaf::PatternKind::Int: {
    if (!needs(types.intType(), "an int"))
      return wild();
    typed::Pattern *result = makePattern(PatternKind::Int, pattern.range, types.intType());
    result->value = pattern.to<IntPattern>().value;
    return result;
  }
  case sheaf::PatternKind::Bool: {
    if (!needs(types.boolType(), "a bool"))
      return wild();
    typed::Pattern *result = makePattern(PatternKind::Bool, pattern.range, types.boolType());
    result->value = pattern.to<BoolPattern>().value;
    return result;
  }
  case sheaf::PatternKind::Tuple: {
    const auto &elements = pattern.to<TuplePattern>().elements;
    if (type->is(TypeKind::Variable)) {
      std::vector<TypeRef> fields;
      for (size_t i = 0; i < elements.size(); ++i)
        fields.push_back(types.variable());
      types.subsume(type, types.tuple(std::move(fields)));
      type = types.resolve(type);
    }
    if (!type->is(TypeKind::Tuple) || type->args.size() != elements.size()) {
      if (!isError(type))
        diags.error(pattern.range,
                    fmt::format("this pattern matches a tuple of {}, but the value is '{}'",
                                elements.size(), types.print(type)));
      bindAll(elements);
      return wild();
    }
    typed::Pattern *result = makePattern(PatternKind::Tuple, pattern.range, type);
    for (size_t i = 0; i < elements.size(); ++i)
      result->args.push_back(checkPattern(*elements[i], type->args[i], names));
    return result;
  }
  case sheaf::PatternKind::Constructor: {
    const auto &syntax = pattern.to<ConstructorPattern>();
    std::optional<size_t> file;
    if (syntax.file && !(file = state.qualifier(syntax.file->name))) {
      diags.error(syntax.file->range,
                  fmt::format("'{}' is not the name of a file here", syntax.file->name));
      bindAll(syntax.args);
      return wild();
    }
    const Named *named =
        file ? state.findMember(*file, syntax.name.name) : state.findGlobal(syntax.name.name);
    const auto *ctor = named ? std::get_if<CheckerState::ConstructorRef>(&named->what) : nullptr;
    if (!ctor) {
      std::vector<std::string> candidates;
      for (const auto &[name, other] :
           file ? state.scopes[*file].declared : state.fileScope().visible)
        if (std::holds_alternative<CheckerState::ConstructorRef>(other.what))
          candidates.push_back(name);
      if (!isError(type) || !named)
        diags.error(syntax.name.range,
                    fmt::format("there is no constructor '{}'", syntax.name.name),
                    file ? state.suggest(syntax.name.name, candidates)
                         : state.suggestName(syntax.name.name, candidates));
      bindAll(syntax.args);
      return wild();
    }
    const DataInfo &data = *ctor->data;
    if (type->is(TypeKind::Variable)) {
      std::vector<TypeRef> args;
      for (size_t i = 0; i < data.typeParams.size(); ++i)
        args.push_back(types.variable());
      types.subsume(type, types.dataType(&data, std::move(args)));
      type = types.resolve(type);
    }
    if (!type->is(TypeKind::Data) || type->data != &data) {
      if (!isError(type)) {
        auto &error = diags.error(
            syntax.name.range, fmt::format("constructor '{}' makes a '{}', but the value is '{}'",
                                           syntax.name.name, data.name, types.print(type)));
        if (type->is(TypeKind::Data)) {
          std::string text;
          for (const auto &other : type->data->constructors)
            text += (text.empty() ? "" : ", ") + other.name;
          error.withHelp(fmt::format("the constructors of '{}' are {}", type->data->name, text));
        }
      }
      bindAll(syntax.args);
      return wild();
    }
    const DataInfo::Constructor &info = data.constructors[ctor->index];
    if (info.fields.size() != syntax.args.size()) {
      std::string fields;
      for (const auto &field : info.fields)
        fields += (fields.empty() ? "" : ", ") + (field.name.empty() ? "_" : field.name);
      diags.error(pattern.range,
                  fmt::format("constructor '{}' has {} field{}, but the pattern has {}", info.name,
                              info.fields.size(), info.fields.size() == 1 ? "" : "s",
                              syntax.args.size()),
                  info.fields.empty() ? fmt::format("write {}", info.name)
                                      : fmt::format("write {}({})", info.name, fields));
      bindAll(syntax.args);
      return wild();
    }
    std::map<TypeRef, TypeRef> params;
    for (size_t i = 0; i < data.typeParams.size(); ++i)
      params.emplace(data.typeParams[i], type->args[i]);
    typed::Pattern *result = makePattern(PatternKind::Constructor, pattern.range, type);
    result->constructor = ctor->index;
    for (size_t i = 0; i < syntax.args.size(); ++i) {
      TypeRef fieldType = types.substitute(info.fields[i].type, params,
                                           [](const std::string &) { return std::nullopt; });
      std::vector<typed::OpenedDim> openedDims;
      fieldType = extents.open(fieldType, openedDims);
      typed::Pattern *field = checkPattern(*syntax.args[i], fieldType, names);
      field->opened.insert(field->opened.end(), openedDims.begin(), openedDims.end());
      result->args.push_back(field);
    }
    return result;
  }
  case sheaf::PatternKind::List:
  case sheaf::PatternKind::Cons: {
    const auto *cons = pattern.as<ConsPattern>();
    std::vector<const sheaf::Pattern *> heads;
    if (cons)
      heads.push_back(cons->head);
    else
      heads = pattern.to<ListPattern>().elements;
    if (!needs(types.list(types.variable()), "a list") || types.contains(type, TypeKind::Layer)) {
      if (!isError(type) && types.contains(type, TypeKind::Layer))
        diags.error(pattern.range, "a list of layers cannot be matched",
                    "use map, fold or an index on it");
      bindAll(heads);
      if (cons)
        checkPattern(*cons->tail, types.error(), names);
      return wild();
    }
    // As many as there are, where a check has said so.
    Dim count(static_cast<int64_t>(heads.size()));
    if (!cons && type->length() && !dims.value(*type->length()) &&
        dims.same(*type->length(), count))
      type = types.list(type->element(), count);
    // Built back to front, but names are bound in the order they are written.
    std::vector<typed::Pattern *> inner;
    for (const sheaf::Pattern *head : heads) {
      std::vector<typed::OpenedDim> openedDims;
      TypeRef element = extents.open(types.resolve(type->element()), openedDims);
      inner.push_back(checkPattern(*head, element, names));
      inner.back()->opened.insert(inner.back()->opened.end(), openedDims.begin(), openedDims.end());
    }
    auto withoutFirst = [&](size_t count) {
      const Dim *length = type->length();
      return types.list(type->element(),
                        length ? std::optional(*length - Dim(static_cast<int64_t>(count)))
                               : std::nullopt);
    };
    TypeRef tail = withoutFirst(heads.size());
    typed::Pattern *result = cons ? checkPattern(*cons->tail, tail, names)
                                  : makePattern(PatternKind::Nil, pattern.range, tail);
    // Where the pattern matches, so many elements are all.
    if (!cons && tail->length())
      dims.assume(*tail->length(), Dim(0));
    for (size_t i = inner.size(); i > 0; --i) {
      typed::Pattern *outer = makePattern(PatternKind::Cons, pattern.range, withoutFirst(i - 1));
      outer->args = {inner[i - 1], result};
      result = outer;
    }
    return result;
  }
  }
  return wild();
}

void PatternChecker::requireIrrefutable(const typed::Pattern &pattern, const std::string &where) {
  Coverage coverage({&pattern});
  std::vector<std::string> examples = coverage.missing();
  if (!examples.empty())
    diags.error(pattern.range,
                fmt::format("the pattern of {} must match every value, but not {}", where,
                            examples.front()),
                "use match");
}

void PatternChecker::checkArms(const MatchExpr &syntax, const typed::MatchExpr &match) {
  constexpr size_t mostGuards = 200;
  std::vector<const typed::Pattern *> rows;
  std::vector<size_t> before;
  size_t guards = 0;
  for (const typed::MatchArm &arm : match.arms) {
    before.push_back(rows.size());
    if (arm.guard)
      ++guards;
    else
      rows.push_back(arm.pattern);
  }
  if (guards > mostGuards)
    diags.error(syntax.headRange,
                fmt::format("this match has {} arms with a guard, but {} are the most", guards,
                            mostGuards));
  Coverage coverage(rows);
  std::vector<std::string> examples = coverage.missing();
  std::vector<size_t> useless;
  for (size_t i = 0; i < match.arms.size(); ++i)
    if (!coverage.isUseful(*match.arms[i].pattern, before[i]))
      useless.push_back(i);
  if (coverage.gaveUp()) {
    diags.error(syntax.headRange, "the patterns of this match are too complex to check",
                "match in two steps");
    return;
  }
  if (!examples.empty()) {
    constexpr size_t mostShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(examples.size(), mostShown); ++i)
      text += (i ? ", " : "") + examples[i];
    if (examples.size() > mostShown)
      text += fmt::format(" and {} more", examples.size() - mostShown);
    bool isNumber = text.find_first_not_of("-0123456789") == std::string::npos;
    diags.error(syntax.headRange, fmt::format("this match does not cover {}", text),
                examples.size() > 1 ? "add an arm for each, or one for all of them: _ => ..."
                                    : fmt::format("add an arm: {} => ...", isNumber ? "_" : text));
  }
  for (size_t i : useless)
    diags.error(syntax.arms[i].pattern->range,
                "this arm is never reached: the arms before it cover all it matches");
}

} // namespace sheaf
