#include "compiler/driver/Config.h"

#include "compiler/frontend/Parser.h"
#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sheaf::driver {

namespace {

using Member = io::ModelConfig::Member;

constexpr int64_t kGreatestDim = (int64_t{1} << 31) - 1;

/// A config.json, and the files beside it that members are asked of: `1_Pooling/config.json:mode`.
class Configs {
public:
  explicit Configs(const io::ModelConfig &config) : config_(config) {}

  /// The first of the members that is there.
  std::pair<const ConfigMember *, const Member *> find(const std::vector<ConfigMember> &members) {
    for (const ConfigMember &member : members) {
      auto [file, name] = parts(member.name);
      const io::ModelConfig *config = file.empty() ? &config_ : other(file);
      if (const Member *found = config ? config->find(name) : nullptr)
        return {&member, found};
    }
    return {nullptr, nullptr};
  }
  /// "all-MiniLM-L6-v2/config.json: the member 'hidden_act'"
  std::string nameOf(const ConfigMember &member) {
    auto [file, name] = parts(member.name);
    const io::ModelConfig *config = file.empty() ? nullptr : other(file);
    return fmt::format("{}: the member {}", (config ? *config : config_).name(), io::quoted(name));
  }

private:
  static std::pair<std::string, std::string> parts(const std::string &member) {
    constexpr std::string_view ending = ".json:";
    size_t at = member.find(ending);
    if (at == std::string::npos)
      return {"", member};
    return {member.substr(0, at + ending.size() - 1), member.substr(at + ending.size())};
  }
  const io::ModelConfig *other(const std::string &file) {
    auto it = others_.find(file);
    if (it == others_.end())
      it = others_.emplace(file, config_.other(file)).first;
    return it->second ? &*it->second : nullptr;
  }

  const io::ModelConfig &config_;
  std::map<std::string, std::optional<io::ModelConfig>> others_;
};

std::optional<int64_t> dimOf(const Member &member) {
  std::optional<int64_t> value = member.whole();
  return value && *value >= 1 && *value <= kGreatestDim ? value : std::nullopt;
}

enum class Kind { Whole, Number, Truth };

/// What a constant is: its type says so, or what it is without a config.json. Nothing where its
/// type is none of a number or truth value.
std::optional<Kind> kindOf(const LetDecl &let) {
  if (const auto *host = let.type ? let.type->as<HostTypeExpr>() : nullptr)
    return host->host == HostTypeKind::Int    ? Kind::Whole
           : host->host == HostTypeKind::Bool ? Kind::Truth
                                              : Kind::Number;
  if (const auto *tensor = let.type ? let.type->as<TensorTypeExpr>() : nullptr;
      tensor && tensor->dims.empty() && tensor->element != rt::DType::Bool)
    return tensor->element == rt::DType::I32 || tensor->element == rt::DType::I64 ? Kind::Whole
                                                                                  : Kind::Number;
  if (let.type)
    return std::nullopt;
  bool isTruth = let.value->is<BoolLiteralExpr>(), isNumber = false;
  std::vector<const Expr *> rest = {let.value};
  while (!rest.empty()) {
    const Expr *expr = rest.back();
    rest.pop_back();
    isNumber |= expr->is<FloatLiteralExpr>();
    forEachChild(*expr, [&](const Expr &child) { rest.push_back(&child); });
  }
  return isTruth ? Kind::Truth : isNumber ? Kind::Number : Kind::Whole;
}

std::optional<double> valueOf(const Member &member, Kind kind) {
  constexpr int64_t greatest = int64_t{1} << 53; // beyond, not every number is a double
  std::optional<double> value;
  if (kind == Kind::Truth && member.kind == Member::Kind::Bool)
    value = member.truth ? 1 : 0;
  else if (std::optional<int64_t> whole = member.whole();
           kind == Kind::Whole && whole && std::abs(*whole) <= greatest)
    value = static_cast<double>(*whole);
  else if (kind == Kind::Number && member.kind == Member::Kind::Number &&
           std::isfinite(member.number))
    value = member.number;
  return value;
}

bool equals(const CheckDecl::Value &value, const Member *member) {
  if (!member)
    return std::holds_alternative<std::monostate>(value.value);
  if (const auto *text = std::get_if<std::string>(&value.value))
    return member->kind == Member::Kind::String && member->text == *text;
  if (const auto *number = std::get_if<double>(&value.value))
    return member->kind == Member::Kind::Number && member->number == *number;
  if (const auto *truth = std::get_if<bool>(&value.value))
    return member->kind == Member::Kind::Bool && member->truth == *truth;
  return false;
}

std::string textOf(const CheckDecl::Value &value) {
  if (const auto *text = std::get_if<std::string>(&value.value))
    return io::quoted(*text);
  if (const auto *number = std::get_if<double>(&value.value))
    return fmt::format("{}", *number);
  if (const auto *truth = std::get_if<bool>(&value.value))
    return *truth ? "true" : "false";
  return "null";
}

std::string namesOf(const std::vector<ConfigMember> &members) {
  std::string text;
  for (const ConfigMember &member : members)
    text += (text.empty() ? "" : " or ") + io::quoted(member.name);
  return text;
}

class Taker {
public:
  Taker(Module &module, const CompileOptions &options, Diagnostics &diags)
      : module_(module), options_(options), diags_(diags) {
    if (options.config)
      configs_.emplace(*options.config);
  }

  std::map<std::string, double> run() {
    for (size_t file = 0; file < module_.fileCount(); ++file)
      for (const Decl *&decl : file == 0 ? module_.decls : module_.used[file - 1]) {
        if (const auto *let = decl->as<LetDecl>(); let && !let->config.empty())
          decl = take(*let);
        else if (const auto *dim = decl->as<DimDecl>())
          refuseDim(*dim);
        else if (const auto *check = decl->as<CheckDecl>())
          hold(*check);
      }
    return std::move(values_);
  }

private:
  const Decl *take(const LetDecl &let) {
    const std::string &name = let.name.name;
    if (auto [it, isNew] = places_.try_emplace(name, let.name.range); !isNew) {
      diags_
          .error(let.name.range, fmt::format("'{}' comes with weights twice", name),
                 "constants that do have different names in a model and the files that it uses")
          .withNote(it->second, "the first declaration is here");
      return &let;
    }
    std::optional<Kind> found = kindOf(let);
    if (!found) {
      diags_.error(let.type->range, "what comes with weights is a number, true or false",
                   "the types are int, float, bool, and tensors of numbers without axes, as f32");
      return &let;
    }
    Kind kind = *found;
    std::optional<double> value;
    SourceRange range = let.value->range;
    if (auto stored = options_.constants.find(name); stored != options_.constants.end()) {
      value = stored->second;
      if (kind == Kind::Whole && std::trunc(*value) != *value)
        kind = Kind::Number;
    } else if (configs_) {
      auto [member, there] = configs_->find(let.config);
      if (!there)
        return &let;
      range = member->range;
      value = valueOf(*there, kind);
      if (!value)
        refuse(*member, *there,
               fmt::format("'{}' is {}", name,
                           kind == Kind::Truth   ? "true or false"
                           : kind == Kind::Whole ? "a whole number"
                                                 : "a number"));
    }
    if (!value)
      return &let;
    values_[name] = *value;
    auto *taken = module_.arena.make<LetDecl>(let.range);
    taken->name = let.name;
    taken->type = let.type;
    taken->stored = let.stored;
    taken->value = literal(*value, kind, range);
    return taken;
  }

  const Expr *literal(double value, Kind kind, SourceRange range) {
    if (kind == Kind::Truth) {
      auto *truth = module_.arena.make<BoolLiteralExpr>(range);
      truth->value = value != 0;
      return truth;
    }
    Expr *number = nullptr;
    if (kind == Kind::Whole) {
      auto *whole = module_.arena.make<IntLiteralExpr>(range);
      whole->value = static_cast<int64_t>(std::abs(value));
      number = whole;
    } else {
      auto *real = module_.arena.make<FloatLiteralExpr>(range);
      real->value = std::abs(value);
      number = real;
    }
    if (!std::signbit(value))
      return number;
    auto *negated = module_.arena.make<UnaryExpr>(range);
    negated->operand = number;
    negated->height = 2;
    return negated;
  }

  /// A dim that got no value though a member is there.
  void refuseDim(const DimDecl &dim) {
    if (!configs_ || options_.dims.contains(dim.name.name))
      return;
    if (auto [member, found] = configs_->find(dim.config); found)
      refuse(*member, *found,
             fmt::format("dim '{}' is a whole number from 1 to {}", dim.name.name, kGreatestDim));
  }

  void refuse(const ConfigMember &member, const Member &found, const std::string &wanted) {
    diags_.error(member.range, fmt::format("{} is {}, but {}", configs_->nameOf(member),
                                           found.describe(), wanted));
  }

  void hold(const CheckDecl &check) {
    if (!configs_)
      return;
    auto [member, found] = configs_->find(check.config);
    auto fits = [&, found = found](const CheckDecl::Value &value) {
      return found || !check.absent ? equals(value, found) : value.value == check.absent->value;
    };
    if (std::any_of(check.values.begin(), check.values.end(), fits))
      return;
    std::string wanted;
    for (const CheckDecl::Value &value : check.values)
      wanted += (wanted.empty() ? "" : " or ") + textOf(value);
    std::string what = found ? fmt::format("{} is {}", configs_->nameOf(*member), found->describe())
                             : fmt::format("{}: there is no member {}", options_.config->name(),
                                           namesOf(check.config));
    diags_.error(found ? member->range : check.config.front().range,
                 fmt::format("{}, but the model computes with {}", what, wanted), check.message);
  }

  Module &module_;
  const CompileOptions &options_;
  Diagnostics &diags_;
  std::optional<Configs> configs_; ///< nothing: there are no weights with one
  std::map<std::string, double> values_;
  std::map<std::string, SourceRange> places_;
};

} // namespace

void bindConfig(const SourceFile &source, const io::ModelConfig &config, CompileOptions &options) {
  if (source.isProgram())
    return;
  options.config = config;
  std::shared_ptr<const Syntax> syntax = soundSyntax(source);
  Configs configs(config);
  for (size_t file = 0; syntax && file < syntax->module.fileCount(); ++file)
    for (const Decl *decl : syntax->module.declsOf(file))
      if (const auto *dim = decl->as<DimDecl>())
        if (auto [member, found] = configs.find(dim->config); found)
          if (std::optional<int64_t> value = dimOf(*found)) // else it is told when it is compiled
            options.dims.emplace(dim->name.name, *value);
}

void bindDims(const SourceFile &source, const StoredDims &stored, const io::Vocabularies &given,
              CompileOptions &options) {
  if (stored.dims.empty())
    return;
  std::vector<std::string> declared = declaredDims(source);
  for (const auto &[name, value] : stored.dims) {
    if (std::find(declared.begin(), declared.end(), name) == declared.end())
      continue;
    // That its words are others is what is to be told of another vocabulary.
    if (std::optional<std::string> words = vocabularyOfDim(name))
      if (const io::Vocabulary *own = given.find(*words); own && own->size() != value)
        continue;
    auto [it, isNew] = options.dims.emplace(name, value);
    if (it->second != value)
      throw UserError(fmt::format("{0} {1}={2} contradicts {3}, whose weights were made with "
                                  "{1}={4}",
                                  stored.dimTerm, name, it->second, stored.weights, value));
  }
}

std::map<std::string, double> takeConfig(Module &module, const CompileOptions &options,
                                         Diagnostics &diags) {
  return Taker(module, options, diags).run();
}

} // namespace sheaf::driver
