/* builder.h - Models that a program builds
 *
 * A front end needs no text: it builds what the text would say, node by node, with places in its
 * own files, and compiles it as a text is compiled (compiler.h):
 *
 *   sheaf_model_builder *b;
 *   sheaf_model_builder_create("scale.toy", &b);
 *   sheaf_place at = {"scale.toy", 1, 5, 1, 10};
 *   sheaf_built_expr x, two, product;
 *   sheaf_build_name(b, "x", &at, &x);
 *   sheaf_build_float(b, 2.0, &at, &two);
 *   sheaf_build_binary(b, SHEAF_MUL, x, two, &at, &product);
 *   ...
 *   sheaf_model_builder_finish(b, &options.source);
 *   sheaf_compile(&options, &model, &diagnostics);
 *
 * Types and extents are checked when it is compiled: diagnostics are those of the text, at the
 * places of who builds. So is what cannot be said in the language, such as a name that is none.
 * What is said here of nodes is checked at once, and is SHEAF_INVALID; then nothing was built.
 *
 * A node belongs to its builder. Parts are built before the whole. An expression or a statement
 * stands in one place of a model; types and patterns may be used again. A node of id 0 is none,
 * where one may be left out.
 *
 * A type or a pattern has at most 500 levels, with all that stands in it, and 65,536 parts where
 * each shared one counts as often as it stands there. Places lie in at most 48 files, each with a
 * text of less than 64 MiB.
 *
 * docs/language.md says what the forms mean. builder.hpp is the same for C++. No compiler is opened
 * to build. Texts are copied.
 */
#ifndef SHEAF_BUILDER_H
#define SHEAF_BUILDER_H

#include "sheaf/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sheaf_model_builder sheaf_model_builder;

typedef struct sheaf_built_type {
  uint64_t id;
} sheaf_built_type;
typedef struct sheaf_built_pattern {
  uint64_t id;
} sheaf_built_pattern;
typedef struct sheaf_built_expr {
  uint64_t id;
} sheaf_built_expr;
typedef struct sheaf_built_statement {
  uint64_t id;
} sheaf_built_statement;

/* Where something is built: numbers count from 1, columns in code points, and the end is after the
 * last one; an end of 0, 0 is a column after the beginning. Where a function takes null for it, the
 * beginning of the file that the builder is called. It does not grow. */
typedef struct sheaf_place {
  const char *file;
  int64_t line, column, end_line, end_column;
} sheaf_place;

/* ---- The whole ------------------------------------------------------------------------------ */

/* `name`, a file's, stands for the whole in messages, and is where files that are used are looked
 * for. */
SHEAF_API sheaf_status sheaf_model_builder_create(const char *name, sheaf_model_builder **builder);
SHEAF_API void sheaf_model_builder_release(sheaf_model_builder *builder);
/* The text of a file that places are in, so that messages show its lines. */
SHEAF_API sheaf_status sheaf_model_builder_text(sheaf_model_builder *builder, const char *file,
                                                const char *text, size_t length);
/* The model, for sheaf_compile_options.source. Nothing can be built after it. */
SHEAF_API sheaf_status sheaf_model_builder_finish(sheaf_model_builder *builder,
                                                  sheaf_source **source);

/* ---- Types ---------------------------------------------------------------------------------- */

typedef enum sheaf_extent_kind {
  SHEAF_EXTENT_UNKNOWN = 0, /* `?` */
  SHEAF_EXTENT_NUMBER = 1,
  SHEAF_EXTENT_NAME = 2, /* of a dim */
  SHEAF_EXTENT_EXPR = 3, /* of dims and numbers */
  SHEAF_EXTENT_PACK = 4  /* `*name`: any number of extents */
} sheaf_extent_kind;

typedef struct sheaf_extent {
  int32_t kind; /* a sheaf_extent_kind */
  int64_t number;
  const char *name;
  sheaf_built_expr expr;
} sheaf_extent;

/* `f32[n, 3]`; without extents `f32`. */
SHEAF_API sheaf_status sheaf_build_tensor_type(sheaf_model_builder *builder, DLDataType element,
                                               const sheaf_extent *extents, size_t count,
                                               const sheaf_place *at, sheaf_built_type *type);
/* `token<name>`; null: `token`. */
SHEAF_API sheaf_status sheaf_build_token_type(sheaf_model_builder *builder, const char *vocabulary,
                                              const sheaf_place *at, sheaf_built_type *type);
/* `token<name>[n]` */
SHEAF_API sheaf_status sheaf_build_tokens_type(sheaf_model_builder *builder, const char *vocabulary,
                                               const sheaf_extent *extents, size_t count,
                                               const sheaf_place *at, sheaf_built_type *type);
/* SHEAF_INT, SHEAF_FLOAT or SHEAF_BOOL (sheaf_kind). */
SHEAF_API sheaf_status sheaf_build_host_type(sheaf_model_builder *builder, int32_t kind,
                                             const sheaf_place *at, sheaf_built_type *type);
/* `list<T>`, or `list<T>[length]`; the length may be null. */
SHEAF_API sheaf_status sheaf_build_list_type(sheaf_model_builder *builder, sheaf_built_type element,
                                             const sheaf_extent *length, const sheaf_place *at,
                                             sheaf_built_type *type);
/* `(A, B)`, `()`; of one type that type. */
SHEAF_API sheaf_status sheaf_build_tuple_type(sheaf_model_builder *builder,
                                              const sheaf_built_type *elements, size_t count,
                                              const sheaf_place *at, sheaf_built_type *type);
/* `(A, B) -> R` */
SHEAF_API sheaf_status sheaf_build_function_type(sheaf_model_builder *builder,
                                                 const sheaf_built_type *params, size_t count,
                                                 sheaf_built_type result, const sheaf_place *at,
                                                 sheaf_built_type *type);
/* A data type, a type parameter or a layer. `file`: what a file is used as; null: none. */
SHEAF_API sheaf_status sheaf_build_named_type(sheaf_model_builder *builder, const char *name,
                                              const sheaf_built_type *args, size_t count,
                                              const char *file, const sheaf_place *at,
                                              sheaf_built_type *type);

/* ---- Patterns ------------------------------------------------------------------------------- */

/* `_` */
SHEAF_API sheaf_status sheaf_build_wildcard(sheaf_model_builder *builder, const sheaf_place *at,
                                            sheaf_built_pattern *pattern);
/* A name for what stands there. */
SHEAF_API sheaf_status sheaf_build_binding(sheaf_model_builder *builder, const char *name,
                                           const sheaf_place *at, sheaf_built_pattern *pattern);
SHEAF_API sheaf_status sheaf_build_int_pattern(sheaf_model_builder *builder, int64_t value,
                                               const sheaf_place *at, sheaf_built_pattern *pattern);
SHEAF_API sheaf_status sheaf_build_bool_pattern(sheaf_model_builder *builder, int32_t value,
                                                const sheaf_place *at,
                                                sheaf_built_pattern *pattern);
/* Of one pattern that pattern. */
SHEAF_API sheaf_status sheaf_build_tuple_pattern(sheaf_model_builder *builder,
                                                 const sheaf_built_pattern *elements, size_t count,
                                                 const sheaf_place *at,
                                                 sheaf_built_pattern *pattern);
/* `Node(l, r)`, `Leaf`. `file`: what a file is used as; null: none. */
SHEAF_API sheaf_status sheaf_build_constructor_pattern(
    sheaf_model_builder *builder, const char *constructor, const sheaf_built_pattern *args,
    size_t count, const char *file, const sheaf_place *at, sheaf_built_pattern *pattern);
/* `[a, b]` */
SHEAF_API sheaf_status sheaf_build_list_pattern(sheaf_model_builder *builder,
                                                const sheaf_built_pattern *elements, size_t count,
                                                const sheaf_place *at,
                                                sheaf_built_pattern *pattern);
/* `head :: tail` */
SHEAF_API sheaf_status sheaf_build_cons_pattern(sheaf_model_builder *builder,
                                                sheaf_built_pattern head, sheaf_built_pattern tail,
                                                const sheaf_place *at,
                                                sheaf_built_pattern *pattern);

/* ---- Expressions ---------------------------------------------------------------------------- */

typedef enum sheaf_unary { SHEAF_NEGATE = 0, SHEAF_NOT = 1 } sheaf_unary;

typedef enum sheaf_binary {
  SHEAF_OR = 0,
  SHEAF_AND = 1,
  SHEAF_EQ = 2,
  SHEAF_NE = 3,
  SHEAF_LT = 4,
  SHEAF_LE = 5,
  SHEAF_GT = 6,
  SHEAF_GE = 7,
  SHEAF_CONS = 8,
  SHEAF_ADD = 9,
  SHEAF_SUB = 10,
  SHEAF_MUL = 11,
  SHEAF_DIV = 12,
  SHEAF_MOD = 13,
  SHEAF_MATMUL = 14
} sheaf_binary;

SHEAF_API sheaf_status sheaf_build_int(sheaf_model_builder *builder, int64_t value,
                                       const sheaf_place *at, sheaf_built_expr *expr);
SHEAF_API sheaf_status sheaf_build_float(sheaf_model_builder *builder, double value,
                                         const sheaf_place *at, sheaf_built_expr *expr);
SHEAF_API sheaf_status sheaf_build_bool(sheaf_model_builder *builder, int32_t value,
                                        const sheaf_place *at, sheaf_built_expr *expr);
/* A string, such as the first argument of einsum. */
SHEAF_API sheaf_status sheaf_build_text(sheaf_model_builder *builder, const char *value,
                                        const sheaf_place *at, sheaf_built_expr *expr);
/* A variable, function, parameter, dim, layer or constructor. */
SHEAF_API sheaf_status sheaf_build_name(sheaf_model_builder *builder, const char *name,
                                        const sheaf_place *at, sheaf_built_expr *expr);
/* `op`: a sheaf_unary. */
SHEAF_API sheaf_status sheaf_build_unary(sheaf_model_builder *builder, int32_t op,
                                         sheaf_built_expr operand, const sheaf_place *at,
                                         sheaf_built_expr *expr);
/* `op`: a sheaf_binary. */
SHEAF_API sheaf_status sheaf_build_binary(sheaf_model_builder *builder, int32_t op,
                                          sheaf_built_expr lhs, sheaf_built_expr rhs,
                                          const sheaf_place *at, sheaf_built_expr *expr);

/* Those with names follow those without. */
typedef struct sheaf_built_argument {
  const char *name; /* NULL: none */
  sheaf_built_expr value;
} sheaf_built_argument;

/* Of functions and operators by name, of data and layers by their capital, of members of layers. */
SHEAF_API sheaf_status sheaf_build_call(sheaf_model_builder *builder, sheaf_built_expr callee,
                                        const sheaf_built_argument *args, size_t count,
                                        const sheaf_place *at, sheaf_built_expr *expr);
/* `base.name` */
SHEAF_API sheaf_status sheaf_build_field(sheaf_model_builder *builder, sheaf_built_expr base,
                                         const char *name, const sheaf_place *at,
                                         sheaf_built_expr *expr);

/* An index; or, without one, the slice `begin:end`, both of which may be left out. */
typedef struct sheaf_built_index {
  sheaf_built_expr index, begin, end;
} sheaf_built_index;

/* `base[i, a:b]` */
SHEAF_API sheaf_status sheaf_build_index(sheaf_model_builder *builder, sheaf_built_expr base,
                                         const sheaf_built_index *items, size_t count,
                                         const sheaf_place *at, sheaf_built_expr *expr);
SHEAF_API sheaf_status sheaf_build_list(sheaf_model_builder *builder,
                                        const sheaf_built_expr *elements, size_t count,
                                        const sheaf_place *at, sheaf_built_expr *expr);
/* Of one expression that expression. */
SHEAF_API sheaf_status sheaf_build_tuple(sheaf_model_builder *builder,
                                         const sheaf_built_expr *elements, size_t count,
                                         const sheaf_place *at, sheaf_built_expr *expr);

/* `let pattern: type = value`; the type may be left out. */
SHEAF_API sheaf_status sheaf_build_let(sheaf_model_builder *builder, sheaf_built_pattern pattern,
                                       sheaf_built_expr value, sheaf_built_type type,
                                       const sheaf_place *at, sheaf_built_statement *statement);
/* `check condition, "message"`; the message may be null. */
SHEAF_API sheaf_status sheaf_build_check(sheaf_model_builder *builder, sheaf_built_expr condition,
                                         const char *message, const sheaf_place *at,
                                         sheaf_built_statement *statement);
/* A call for what it does. */
SHEAF_API sheaf_status sheaf_build_run(sheaf_model_builder *builder, sheaf_built_expr call,
                                       const sheaf_place *at, sheaf_built_statement *statement);
/* `{ statements; result }` */
SHEAF_API sheaf_status sheaf_build_block(sheaf_model_builder *builder,
                                         const sheaf_built_statement *statements, size_t count,
                                         sheaf_built_expr result, const sheaf_place *at,
                                         sheaf_built_expr *expr);
SHEAF_API sheaf_status sheaf_build_if(sheaf_model_builder *builder, sheaf_built_expr condition,
                                      sheaf_built_expr then, sheaf_built_expr otherwise,
                                      const sheaf_place *at, sheaf_built_expr *expr);

/* `pattern if guard => body`; the guard may be left out. */
typedef struct sheaf_built_arm {
  sheaf_built_pattern pattern;
  sheaf_built_expr guard, body;
} sheaf_built_arm;

SHEAF_API sheaf_status sheaf_build_match(sheaf_model_builder *builder, sheaf_built_expr scrutinee,
                                         const sheaf_built_arm *arms, size_t count,
                                         const sheaf_place *at, sheaf_built_expr *expr);

/* A name, or, if that is null, a pattern. Those of lambdas may have no type. */
typedef struct sheaf_built_parameter {
  const char *name;
  sheaf_built_pattern pattern;
  sheaf_built_type type;
} sheaf_built_parameter;

/* `|x, (a, b)| body` */
SHEAF_API sheaf_status sheaf_build_lambda(sheaf_model_builder *builder,
                                          const sheaf_built_parameter *params, size_t count,
                                          sheaf_built_expr body, const sheaf_place *at,
                                          sheaf_built_expr *expr);

/* ---- Declarations: structs that grow -------------------------------------------------------- */

/* All that a file declares, or, where `as` is not null, that under this name. */
SHEAF_API sheaf_status sheaf_build_use(sheaf_model_builder *builder, const char *file,
                                       const char *as, const sheaf_place *at);

/* `dim name = config "member" else value` */
typedef struct sheaf_dim_form {
  size_t size; /* sizeof(sheaf_dim_form) */
  const char *name;
  sheaf_built_expr value;    /* may be left out */
  const char *const *config; /* members of the config.json beside weights; the first one counts */
  size_t config_count;
} sheaf_dim_form;
SHEAF_API sheaf_status sheaf_build_dim(sheaf_model_builder *builder, const sheaf_dim_form *form,
                                       const sheaf_place *at);

typedef struct sheaf_built_field {
  const char *name;
  sheaf_built_type type;
} sheaf_built_field;

typedef struct sheaf_built_constructor {
  const char *name;
  const sheaf_built_field *fields;
  size_t field_count;
} sheaf_built_constructor;

/* `data Rose<T> = Rose(value: T, children: list<Rose<T>>)` */
typedef struct sheaf_data_form {
  size_t size; /* sizeof(sheaf_data_form) */
  const char *name;
  const sheaf_built_constructor *constructors;
  size_t constructor_count;
  const char *const *type_params;
  size_t type_param_count;
} sheaf_data_form;
SHEAF_API sheaf_status sheaf_build_data(sheaf_model_builder *builder, const sheaf_data_form *form,
                                        const sheaf_place *at);

/* `param name : type = initializer(args) as "stored"` */
typedef struct sheaf_param_form {
  size_t size; /* sizeof(sheaf_param_form) */
  const char *name;
  sheaf_built_type type;
  const char *initializer;
  const sheaf_built_argument *args; /* of the initialiser */
  size_t arg_count;
  const char *const *stored; /* what files of weights call it besides */
  size_t stored_count;
} sheaf_param_form;
SHEAF_API sheaf_status sheaf_build_param(sheaf_model_builder *builder, const sheaf_param_form *form,
                                         const sheaf_place *at);

/* `fn name<T>(params) -> result emits E = body` */
typedef struct sheaf_fn_form {
  size_t size; /* sizeof(sheaf_fn_form) */
  const char *name;
  const sheaf_built_parameter *params;
  size_t param_count;
  sheaf_built_type result; /* left out: that of the body */
  sheaf_built_expr body;
  const char *const *type_params;
  size_t type_param_count;
  sheaf_built_type emits; /* left out: it emits nothing */
} sheaf_fn_form;
SHEAF_API sheaf_status sheaf_build_fn(sheaf_model_builder *builder, const sheaf_fn_form *form,
                                      const sheaf_place *at);

/* `let name : type = config "member" else value as "stored"`: a layer, or a constant. */
typedef struct sheaf_constant_form {
  size_t size; /* sizeof(sheaf_constant_form) */
  const char *name;
  sheaf_built_expr value;
  sheaf_built_type type;     /* may be left out */
  const char *const *config; /* as of a dim */
  size_t config_count;
  const char *const *stored; /* as of a param */
  size_t stored_count;
} sheaf_constant_form;
SHEAF_API sheaf_status sheaf_build_constant(sheaf_model_builder *builder,
                                            const sheaf_constant_form *form, const sheaf_place *at);

/* `layer name(dims) { ... }`: params, constants and functions that are declared from here to
 * sheaf_build_layer_end() are its members. */
typedef struct sheaf_layer_form {
  size_t size; /* sizeof(sheaf_layer_form) */
  const char *name;
  const char *const *dims;
  size_t dim_count;
} sheaf_layer_form;
SHEAF_API sheaf_status sheaf_build_layer(sheaf_model_builder *builder, const sheaf_layer_form *form,
                                         const sheaf_place *at);
SHEAF_API sheaf_status sheaf_build_layer_end(sheaf_model_builder *builder);

typedef enum sheaf_config_kind {
  SHEAF_CONFIG_NULL = 0,
  SHEAF_CONFIG_BOOL = 1, /* `number`: other than 0 is true */
  SHEAF_CONFIG_NUMBER = 2,
  SHEAF_CONFIG_TEXT = 3
} sheaf_config_kind;

typedef struct sheaf_config_value {
  int32_t kind; /* a sheaf_config_kind */
  double number;
  const char *text;
} sheaf_config_value;

/* What a member of the config.json must be for the model to compute as it says. */
typedef struct sheaf_config_form {
  size_t size;               /* sizeof(sheaf_config_form) */
  const char *const *config; /* as of a dim */
  size_t config_count;
  const sheaf_config_value *values; /* one of these */
  size_t value_count;
  const char *message;
  const sheaf_config_value *absent; /* what it is where none is there; NULL: null */
} sheaf_config_form;
SHEAF_API sheaf_status sheaf_build_config_check(sheaf_model_builder *builder,
                                                const sheaf_config_form *form,
                                                const sheaf_place *at);

#ifdef __cplusplus
}
#endif

#endif /* SHEAF_BUILDER_H */
