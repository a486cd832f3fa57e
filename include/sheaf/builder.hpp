//===- builder.hpp - Models that a program builds, for C++ ------*- C++ -*-===//
//
// A thin header over builder.h for C++20. What the forms mean is said there.
//
//     sheaf::ModelBuilder b("scale.cpp");
//     auto vector = b.tensor(sheaf::f32, {"hidden"});
//     b.dim("hidden", b.number(4));
//     b.param("w", vector, "ones");
//     b.fn("main", {{"x", vector}}, vector, b.binary(SHEAF_MUL, b.name("x"), b.name("w")));
//     sheaf::CompileOptions options;
//     options.source = std::move(b).finish();
//     sheaf::Model model = sheaf::compile(options);
//
// A place that is not given is the line of the C++ source that calls. `{}` is a node that is left
// out. What builder.h says of nodes throws Error with SHEAF_INVALID.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_BUILDER_HPP
#define SHEAF_BUILDER_HPP

#include "sheaf/builder.h"
#include "sheaf/compiler.hpp"

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sheaf {

// Elements of tensors.
inline constexpr DLDataType f32{kDLFloat, 32, 1}, f16{kDLFloat, 16, 1}, bf16{kDLBfloat, 16, 1},
    i32{kDLInt, 32, 1}, i64{kDLInt, 64, 1}, boolean{kDLBool, 8, 1};

/// Where something is built. Lines and columns count from 1, the end is after the last.
struct Place {
  std::string file;
  std::int64_t line = 1, column = 1, endLine = 0, endColumn = 0; ///< no end: a column further

  Place(std::string file, std::int64_t line, std::int64_t column, std::int64_t endLine = 0,
        std::int64_t endColumn = 0)
      : file(std::move(file)), line(line), column(column), endLine(endLine), endColumn(endColumn) {}
  Place(const std::source_location &at)
      : file(at.file_name()), line(at.line()), column(at.column() ? at.column() : 1) {}
};

class ModelBuilder {
public:
  using Here = std::source_location;
  using T = sheaf_built_type;
  using P = sheaf_built_pattern;
  using E = sheaf_built_expr;
  using S = sheaf_built_statement;
  using Names = std::vector<std::string>;

  explicit ModelBuilder(const std::string &name) {
    sheaf_model_builder *builder = nullptr;
    check(sheaf_model_builder_create(name.c_str(), &builder));
    builder_.reset(builder);
  }
  sheaf_model_builder *get() const { return builder_.get(); }

  /// The text of a file that places are in, so that messages show its lines.
  void addText(const std::string &file, const std::string &text) {
    check(sheaf_model_builder_text(get(), file.c_str(), text.data(), text.size()));
  }

  // Types.

  /// An extent: a dim or a number, an expression of them, unknown(), or pack(name).
  struct Extent {
    Extent(const char *dim) : Extent(std::string(dim)) {}
    Extent(std::string dim) : kind(SHEAF_EXTENT_NAME), name(std::move(dim)) {}
    Extent(int value) : Extent(std::int64_t{value}) {}
    Extent(std::int64_t value) : kind(SHEAF_EXTENT_NUMBER), number(value) {}
    Extent(E expr) : kind(SHEAF_EXTENT_EXPR), expr(expr) {}
    static Extent unknown() {
      Extent extent(0);
      extent.kind = SHEAF_EXTENT_UNKNOWN;
      return extent;
    }
    static Extent pack(std::string name) {
      Extent extent(std::move(name));
      extent.kind = SHEAF_EXTENT_PACK;
      return extent;
    }

    sheaf_extent_kind kind;
    std::int64_t number = 0;
    std::string name;
    E expr{};
  };

  T tensor(DLDataType element, const std::vector<Extent> &extents = {},
           Place at = Here::current()) {
    std::vector<sheaf_extent> all = listed<sheaf_extent>(extents);
    return made<T>(at, sheaf_build_tensor_type, element, all.data(), all.size());
  }
  T token(const std::string &vocabulary = {}, Place at = Here::current()) {
    return made<T>(at, sheaf_build_token_type, detail::orNull(vocabulary));
  }
  T tokens(const std::vector<Extent> &extents, const std::string &vocabulary = {},
           Place at = Here::current()) {
    std::vector<sheaf_extent> all = listed<sheaf_extent>(extents);
    return made<T>(at, sheaf_build_tokens_type, detail::orNull(vocabulary), all.data(), all.size());
  }
  /// SHEAF_INT, SHEAF_FLOAT or SHEAF_BOOL.
  T host(sheaf_kind kind, Place at = Here::current()) {
    return made<T>(at, sheaf_build_host_type, kind);
  }
  T listOf(T element, Place at = Here::current()) {
    return made<T>(at, sheaf_build_list_type, element, nullptr);
  }
  T listOf(T element, const Extent &length, Place at = Here::current()) {
    sheaf_extent one = given(length);
    return made<T>(at, sheaf_build_list_type, element, &one);
  }
  T tupleOf(const std::vector<T> &elements, Place at = Here::current()) {
    return made<T>(at, sheaf_build_tuple_type, elements.data(), elements.size());
  }
  T functionOf(const std::vector<T> &params, T result, Place at = Here::current()) {
    return made<T>(at, sheaf_build_function_type, params.data(), params.size(), result);
  }
  /// A data type, a type parameter or a layer; `file` is what a file is used as.
  T named(const std::string &name, const std::vector<T> &args = {}, const std::string &file = {},
          Place at = Here::current()) {
    return made<T>(at, sheaf_build_named_type, name.c_str(), args.data(), args.size(),
                   detail::orNull(file));
  }

  // Patterns.

  P any(Place at = Here::current()) { return made<P>(at, sheaf_build_wildcard); }
  P bind(const std::string &name, Place at = Here::current()) {
    return made<P>(at, sheaf_build_binding, name.c_str());
  }
  P matchNumber(std::int64_t value, Place at = Here::current()) {
    return made<P>(at, sheaf_build_int_pattern, value);
  }
  P matchTruth(bool value, Place at = Here::current()) {
    return made<P>(at, sheaf_build_bool_pattern, value);
  }
  P matchTuple(const std::vector<P> &elements, Place at = Here::current()) {
    return made<P>(at, sheaf_build_tuple_pattern, elements.data(), elements.size());
  }
  P construct(const std::string &constructor, const std::vector<P> &args = {},
              const std::string &file = {}, Place at = Here::current()) {
    return made<P>(at, sheaf_build_constructor_pattern, constructor.c_str(), args.data(),
                   args.size(), detail::orNull(file));
  }
  P matchList(const std::vector<P> &elements, Place at = Here::current()) {
    return made<P>(at, sheaf_build_list_pattern, elements.data(), elements.size());
  }
  P cons(P head, P tail, Place at = Here::current()) {
    return made<P>(at, sheaf_build_cons_pattern, head, tail);
  }

  // Expressions.

  E number(std::int64_t value, Place at = Here::current()) {
    return made<E>(at, sheaf_build_int, value);
  }
  E number(int value, Place at = Here::current()) { return number(std::int64_t{value}, at); }
  E number(double value, Place at = Here::current()) {
    return made<E>(at, sheaf_build_float, value);
  }
  E truth(bool value, Place at = Here::current()) { return made<E>(at, sheaf_build_bool, value); }
  E text(const std::string &value, Place at = Here::current()) {
    return made<E>(at, sheaf_build_text, value.c_str());
  }
  E name(const std::string &name, Place at = Here::current()) {
    return made<E>(at, sheaf_build_name, name.c_str());
  }
  E unary(sheaf_unary op, E operand, Place at = Here::current()) {
    return made<E>(at, sheaf_build_unary, op, operand);
  }
  E binary(sheaf_binary op, E lhs, E rhs, Place at = Here::current()) {
    return made<E>(at, sheaf_build_binary, op, lhs, rhs);
  }

  /// An argument; those with names follow those without.
  struct Arg {
    Arg(E value) : value(value) {}
    Arg(std::string name, E value) : name(std::move(name)), value(value) {}
    std::string name;
    E value;
  };
  E call(E callee, const std::vector<Arg> &args, Place at = Here::current()) {
    std::vector<sheaf_built_argument> all = listed<sheaf_built_argument>(args);
    return made<E>(at, sheaf_build_call, callee, all.data(), all.size());
  }
  E call(const std::string &callee, const std::vector<Arg> &args, Place at = Here::current()) {
    return call(name(callee, at), args, at);
  }
  E field(E base, const std::string &name, Place at = Here::current()) {
    return made<E>(at, sheaf_build_field, base, name.c_str());
  }

  /// One place between the brackets of `x[i, a:b]`.
  struct Index : sheaf_built_index {
    Index(E index) : sheaf_built_index{index, {}, {}} {}
    static Index slice(E begin, E end) {
      Index index(E{});
      index.begin = begin;
      index.end = end;
      return index;
    }
  };
  E index(E base, const std::vector<Index> &items, Place at = Here::current()) {
    std::vector<sheaf_built_index> all(items.begin(), items.end());
    return made<E>(at, sheaf_build_index, base, all.data(), all.size());
  }
  E list(const std::vector<E> &elements, Place at = Here::current()) {
    return made<E>(at, sheaf_build_list, elements.data(), elements.size());
  }
  E tuple(const std::vector<E> &elements, Place at = Here::current()) {
    return made<E>(at, sheaf_build_tuple, elements.data(), elements.size());
  }

  S let(P pattern, E value, T type = {}, Place at = Here::current()) {
    return made<S>(at, sheaf_build_let, pattern, value, type);
  }
  S let(const std::string &name, E value, T type = {}, Place at = Here::current()) {
    return let(bind(name, at), value, type, at);
  }
  S check(E condition, const std::optional<std::string> &message = {}, Place at = Here::current()) {
    return made<S>(at, sheaf_build_check, condition, message ? message->c_str() : nullptr);
  }
  /// A call for what it does.
  S run(E call, Place at = Here::current()) { return made<S>(at, sheaf_build_run, call); }
  E block(const std::vector<S> &statements, E result, Place at = Here::current()) {
    return made<E>(at, sheaf_build_block, statements.data(), statements.size(), result);
  }
  E ifElse(E condition, E then, E otherwise, Place at = Here::current()) {
    return made<E>(at, sheaf_build_if, condition, then, otherwise);
  }

  struct Arm {
    P pattern;
    E body;
    E guard{};
  };
  E match(E scrutinee, const std::vector<Arm> &arms, Place at = Here::current()) {
    std::vector<sheaf_built_arm> all;
    for (const Arm &arm : arms)
      all.push_back({arm.pattern, arm.guard, arm.body});
    return made<E>(at, sheaf_build_match, scrutinee, all.data(), all.size());
  }

  struct Param {
    Param(const char *name, T type = {}) : name(name), type(type) {}
    Param(std::string name, T type = {}) : name(std::move(name)), type(type) {}
    Param(P pattern, T type = {}) : pattern(pattern), type(type) {}
    std::string name; ///< or a pattern
    P pattern{};
    T type;
  };
  E lambda(const std::vector<Param> &params, E body, Place at = Here::current()) {
    std::vector<sheaf_built_parameter> all = listed<sheaf_built_parameter>(params);
    return made<E>(at, sheaf_build_lambda, all.data(), all.size(), body);
  }

  // Declarations.

  /// All that a file declares, or, with `as`, that under its name.
  void use(const std::string &file, const std::string &as = {}, Place at = Here::current()) {
    sheaf_place place = given(at);
    check(sheaf_build_use(get(), file.c_str(), detail::orNull(as), &place));
  }
  /// `config`: members of the config.json beside weights, the first of which that is there counts.
  void dim(const std::string &name, E value = {}, const Names &config = {},
           Place at = Here::current()) {
    std::vector<const char *> members = texts(config);
    declare(at, sheaf_build_dim,
            sheaf_dim_form{sizeof(sheaf_dim_form), name.c_str(), value, members.data(),
                           members.size()});
  }

  struct Constructor {
    std::string name;
    std::vector<std::pair<std::string, T>> fields;
  };
  void data(const std::string &name, const std::vector<Constructor> &constructors,
            const Names &typeParams = {}, Place at = Here::current()) {
    std::vector<std::vector<sheaf_built_field>> fields;
    std::vector<sheaf_built_constructor> all;
    fields.reserve(constructors.size());
    for (const Constructor &constructor : constructors) {
      std::vector<sheaf_built_field> &of = fields.emplace_back();
      for (const auto &[field, type] : constructor.fields)
        of.push_back({field.c_str(), type});
      all.push_back({constructor.name.c_str(), of.data(), of.size()});
    }
    std::vector<const char *> params = texts(typeParams);
    declare(at, sheaf_build_data,
            sheaf_data_form{sizeof(sheaf_data_form), name.c_str(), all.data(), all.size(),
                            params.data(), params.size()});
  }
  /// `stored`: what files of weights call it besides.
  void param(const std::string &name, T type, const std::string &initializer,
             const std::vector<Arg> &args = {}, const Names &stored = {},
             Place at = Here::current()) {
    std::vector<sheaf_built_argument> all = listed<sheaf_built_argument>(args);
    std::vector<const char *> besides = texts(stored);
    declare(at, sheaf_build_param,
            sheaf_param_form{sizeof(sheaf_param_form), name.c_str(), type, initializer.c_str(),
                             all.data(), all.size(), besides.data(), besides.size()});
  }

  /// What few functions have.
  struct FnOptions {
    Names typeParams;
    T emits{};
  };
  /// With `{}` for a `result` its type is that of the body.
  void fn(const std::string &name, const std::vector<Param> &params, T result, E body,
          const FnOptions &options, Place at = Here::current()) {
    std::vector<sheaf_built_parameter> all = listed<sheaf_built_parameter>(params);
    std::vector<const char *> typeParams = texts(options.typeParams);
    declare(at, sheaf_build_fn,
            sheaf_fn_form{sizeof(sheaf_fn_form), name.c_str(), all.data(), all.size(), result, body,
                          typeParams.data(), typeParams.size(), options.emits});
  }
  void fn(const std::string &name, const std::vector<Param> &params, T result, E body,
          Place at = Here::current()) {
    fn(name, params, result, body, FnOptions(), at);
  }
  /// A layer, or a constant.
  void constant(const std::string &name, E value, T type = {}, const Names &config = {},
                const Names &stored = {}, Place at = Here::current()) {
    std::vector<const char *> members = texts(config), besides = texts(stored);
    declare(at, sheaf_build_constant,
            sheaf_constant_form{sizeof(sheaf_constant_form), name.c_str(), value, type,
                                members.data(), members.size(), besides.data(), besides.size()});
  }
  /// `members` declares params, constants and functions, which become the layer's.
  template <typename Members>
  void layer(const std::string &name, const Names &dims, Members members,
             Place at = Here::current()) {
    std::vector<const char *> all = texts(dims);
    declare(at, sheaf_build_layer,
            sheaf_layer_form{sizeof(sheaf_layer_form), name.c_str(), all.data(), all.size()});
    members();
    check(sheaf_build_layer_end(get()));
  }

  /// What a member of the config.json must be for the model to compute as it says: one of `values`,
  /// or, where it is not there, `absent` must be.
  using ConfigValue = std::variant<std::monostate, bool, double, std::string>; ///< or null
  void checkConfig(const Names &config, const std::vector<ConfigValue> &values,
                   const std::string &message, const std::optional<ConfigValue> &absent = {},
                   Place at = Here::current()) {
    std::vector<const char *> members = texts(config);
    std::vector<sheaf_config_value> all = listed<sheaf_config_value>(values);
    sheaf_config_value none = given(absent ? *absent : ConfigValue());
    declare(at, sheaf_build_config_check,
            sheaf_config_form{sizeof(sheaf_config_form), members.data(), members.size(), all.data(),
                              all.size(), message.c_str(), absent ? &none : nullptr});
  }

  /// The model, for CompileOptions::source.
  Source finish() && {
    sheaf_source *source = nullptr;
    check(sheaf_model_builder_finish(get(), &source));
    return Source(source);
  }

private:
  static void check(sheaf_status status) { sheaf::check(status); }

  static sheaf_place given(const Place &at) {
    return {at.file.c_str(), at.line, at.column, at.endLine, at.endColumn};
  }
  static sheaf_extent given(const Extent &extent) {
    return {extent.kind, extent.number, extent.name.c_str(), extent.expr};
  }
  static sheaf_built_argument given(const Arg &arg) {
    return {detail::orNull(arg.name), arg.value};
  }
  static sheaf_built_parameter given(const Param &param) {
    return {param.pattern.id ? nullptr : param.name.c_str(), param.pattern, param.type};
  }
  static sheaf_config_value given(const ConfigValue &value) {
    if (const bool *truth = std::get_if<bool>(&value))
      return {SHEAF_CONFIG_BOOL, *truth ? 1.0 : 0.0, nullptr};
    if (const double *number = std::get_if<double>(&value))
      return {SHEAF_CONFIG_NUMBER, *number, nullptr};
    if (const std::string *text = std::get_if<std::string>(&value))
      return {SHEAF_CONFIG_TEXT, 0, text->c_str()};
    return {SHEAF_CONFIG_NULL, 0, nullptr};
  }
  /// As C takes them; their texts are those of `from`.
  template <typename To, typename From>
  static std::vector<To> listed(const std::vector<From> &from) {
    std::vector<To> all;
    for (const From &one : from)
      all.push_back(given(one));
    return all;
  }
  static std::vector<const char *> texts(const Names &names) {
    std::vector<const char *> all;
    for (const std::string &name : names)
      all.push_back(name.c_str());
    return all;
  }
  template <typename Node, typename Build, typename... Args>
  Node made(const Place &at, Build build, Args... args) {
    sheaf_place place = given(at);
    Node node{};
    check(build(get(), args..., &place, &node));
    return node;
  }
  template <typename Build, typename Form>
  void declare(const Place &at, Build build, const Form &form) {
    sheaf_place place = given(at);
    check(build(get(), &form, &place));
  }

  struct Release {
    void operator()(sheaf_model_builder *builder) const { sheaf_model_builder_release(builder); }
  };
  std::unique_ptr<sheaf_model_builder, Release> builder_;
};

} // namespace sheaf

#endif // SHEAF_BUILDER_HPP
