//===- build.h - Models that a program builds, step by step -----*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_BUILD_H
#define SHEAF_RUNTIME_API_BUILD_H

#include "runtime/api/handles.h"
#include "runtime/compile/built.h"
#include "sheaf/builder.h"

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Of one builder a node's id is the serial of the builder and, in the low half, the number of its
/// step.
struct sheaf_model_builder {
  enum class Family : uint8_t { Type, Pattern, Expr, Statement, Declaration };
  /// What is known of a step beside its form.
  struct Shape {
    Family family;
    bool isUsed = false;     ///< of expressions and statements: stands somewhere
    uint32_t height = 1;     ///< one more than that of the highest part
    uint32_t writtenOut = 1; ///< how many nodes it has when none is shared
  };

  explicit sheaf_model_builder(std::string name);

  std::mutex mutex;
  const uint32_t serial;
  sheaf::compile::Built built;
  std::vector<Shape> shapes; ///< of each step; longer after one could not be added
  std::map<std::string, uint32_t> fileNumbers;
  bool isInLayer = false, isFinished = false;
};

struct sheaf_source {
  std::shared_ptr<const sheaf::compile::Built> built;
  std::mutex mutex;                ///< of the text
  std::optional<std::string> text; ///< once it was asked for
};

namespace sheaf::api {

/// One step that is being made: looks at the nodes that it is made of, and adds it when all of it
/// is right. Throws Invalid, having changed nothing that a model is made of.
class NewStep {
public:
  using Family = sheaf_model_builder::Family;

  explicit NewStep(sheaf_model_builder &builder);
  ~NewStep();
  NewStep(const NewStep &) = delete;

  // `what`: of the argument, for messages.
  compile::form::TypeNumber type(sheaf_built_type node, const char *what);
  compile::form::PatternNumber pattern(sheaf_built_pattern node, const char *what);
  compile::form::ExprNumber expr(sheaf_built_expr node, const char *what);
  compile::form::StatementNumber statement(sheaf_built_statement node, const char *what);
  /// Those that may be left out.
  compile::form::TypeNumber typeIfAny(sheaf_built_type node, const char *what) {
    return node.id ? type(node, what) : compile::form::TypeNumber();
  }
  compile::form::ExprNumber exprIfAny(sheaf_built_expr node, const char *what) {
    return node.id ? expr(node, what) : compile::form::ExprNumber();
  }

  std::vector<compile::form::TypeNumber> types(const sheaf_built_type *nodes, size_t count);
  std::vector<compile::form::PatternNumber> patterns(const sheaf_built_pattern *nodes,
                                                     size_t count);
  std::vector<compile::form::ExprNumber> exprs(const sheaf_built_expr *nodes, size_t count);
  compile::form::Extent extent(const sheaf_extent &extent);
  std::vector<compile::form::Extent> extents(const sheaf_extent *extents, size_t count);
  std::vector<compile::form::Argument> arguments(const sheaf_built_argument *args, size_t count);
  std::vector<compile::form::Parameter> parameters(const sheaf_built_parameter *params,
                                                   size_t count);

  /// The id of the node.
  uint64_t add(Family family, compile::Form form, const sheaf_place *at);

private:
  uint32_t use(uint64_t id, Family family, const char *what);
  compile::Built::Place placeOf(const sheaf_place *at);

  sheaf_model_builder &builder_;
  std::vector<uint32_t> parts_; ///< the steps that this one is made of
  bool isAdded_ = false;
};

/// The elements of an array of a call.
template <typename T> std::span<const T> elements(const T *first, size_t count, const char *what) {
  if (count)
    given(first, what);
  return {first, count};
}

/// A text that may not be empty, as names may not.
inline const char *named(const char *text, const char *what) {
  if (!*&given(text, what))
    throw Invalid(std::string(what) + " is empty");
  return text;
}

/// Makes the form of a step; a reference to a lambda, so that what is around it is compiled once.
class MakeForm {
public:
  template <typename F>
  MakeForm(const F &make)
      : make_(&make), call_([](const void *of, NewStep &step) {
          return compile::Form((*static_cast<const F *>(of))(step));
        }) {}
  compile::Form operator()(NewStep &step) const { return call_(make_, step); }

private:
  const void *make_;
  compile::Form (*call_)(const void *make, NewStep &step);
};

/// Adds a step. `id` is where that of its node goes; null: the caller has said nowhere.
sheaf_status addStep(sheaf_model_builder *builder, NewStep::Family family, const sheaf_place *at,
                     uint64_t *id, MakeForm make);
/// A declaration, which has no node.
inline sheaf_status declare(sheaf_model_builder *builder, const sheaf_place *at, MakeForm make) {
  uint64_t none;
  return addStep(builder, NewStep::Family::Declaration, at, &none, make);
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_BUILD_H
