/* compiler.h - Compiles models in process
 *
 * A source becomes a sheaf_model, which batches, sessions and engines of sheaf.h take as they take
 * an artefact:
 *
 *   sheaf_compile_options options = {sizeof options};
 *   options.path = "tree.sheaf";
 *   sheaf_model *model;
 *   sheaf_diagnostics *diagnostics;
 *   if (sheaf_compile(&options, &model, &diagnostics) != SHEAF_OK)
 *     fputs(sheaf_diagnostics_text(diagnostics), stderr);
 *
 * Programs link libsheaf_runtime alone. The compiler is another library, libsheaf_compiler, which
 * is opened when it is first needed. It is of the same build as libsheaf_runtime. LLVM is inside of
 * it and hidden, so it goes together with any other LLVM in the process.
 *
 * Nothing here prints, ends the process, sets a signal handler or reads the environment. Any thread
 * may compile at any time; compilations run beside each other. Elements of arrays in structs of
 * options do not grow.
 */
#ifndef SHEAF_COMPILER_H
#define SHEAF_COMPILER_H

#include "sheaf/sheaf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The source ---------------------------------------------------------------------------- */

/* A model that a program built without a text (builder.h). Immutable. */
typedef struct sheaf_source sheaf_source;
SHEAF_API void sheaf_source_release(sheaf_source *source);
/* As a text, which means the same and lives as long as the source. SHEAF_NOT_COMPILED where it says
 * what the language cannot. Opens the compiler. */
SHEAF_API sheaf_status sheaf_source_text(sheaf_source *source, const char **text);

/* A file that a source uses, by `use "NAME"`. */
typedef struct sheaf_used_file {
  size_t size;      /* sizeof(sheaf_used_file) of the library: write nothing beyond */
  const char *name; /* for messages, and for the files that it uses; one file, one name */
  const char *text; /* of `length` bytes */
  size_t length;
} sheaf_used_file;

/* Finds the file that file `by` uses as `used`. Other than 0: it is there, and `file` tells it;
 * what that points at must stay until the function is called again, or the compilation ends. 0: it
 * is looked for in the library of layers. It must not throw. Called in the thread that compiles. */
typedef int (*sheaf_resolve_function)(void *user, const char *used, const char *by,
                                      sheaf_used_file *file);

typedef struct sheaf_dim {
  const char *name;
  int64_t value;
} sheaf_dim;

/* One of: a file with a word a line, words, or a size alone: then tokens are numbers. */
typedef struct sheaf_vocabulary {
  const char *name;         /* `tag` for token<tag>; "" or NULL for token */
  const char *path;         /* NULL: none */
  const char *const *words; /* `size` of them, the first is "<unk>"; NULL: none */
  int64_t size;
} sheaf_vocabulary;

/* A vocabulary as the options take it. It lives as long as `words` and `name` do. */
SHEAF_API sheaf_vocabulary sheaf_words_vocabulary(const sheaf_words *words, const char *name);

/* A weight in the CPU's memory, any strides, of f16, bf16, f32, f64, i32, i64 or bool. */
typedef struct sheaf_named_tensor {
  const char *name;
  const DLTensor *tensor;
} sheaf_named_tensor;

typedef enum sheaf_precision {
  SHEAF_F32 = 0,
  SHEAF_BF16 = 1 /* of products with weights and of attention */
} sheaf_precision;

typedef struct sheaf_compile_options {
  size_t size; /* sizeof(sheaf_compile_options) */

  const char *path;               /* a file, or */
  const char *text;               /* `length` bytes of text */
  size_t length;                  /* 0: `text` ends with a zero */
  const char *name;               /* of the text in messages; NULL: the path, or "model.sheaf" */
  sheaf_resolve_function resolve; /* NULL: files that are used are found beside `name` */
  void *resolve_user;
  const char *library; /* the directory in which `lib` is, the layers; NULL: as it is installed */

  const char *entry;     /* the function that an instance is an argument list of; NULL: "main" */
  const sheaf_dim *dims; /* instead of what the source says */
  size_t dim_count;
  const sheaf_vocabulary *vocabularies;
  size_t vocabulary_count;

  const char *weights;    /* a file or directory, which may tell dims; NULL: as the source says */
  uint64_t seed;          /* of the source's initialisers */
  int32_t precision;      /* a sheaf_precision */
  uint32_t threads;       /* that generate code; 0: 2 */
  const char *target_cpu; /* LLVM's name of a processor; NULL: this one */
  const char *const *without; /* optimisations to leave out, by name */
  size_t without_count;
  int32_t training; /* other than 0: with code that differentiates (gradients.h) */
  int32_t dropout;  /* other than 0: dropout drops */

  const char *store;    /* a directory where code is kept for the next time; NULL: none */
  uint64_t store_limit; /* bytes; 0: 256 MB */
  sheaf_stop *stop;     /* requested, ends the compilation: SHEAF_STOPPED; NULL: nothing */

  const sheaf_named_tensor *tensors; /* weights instead of a file's; read until the call ends */
  size_t tensor_count;
  /* What weights are called: "FROM=TO", the first that matches; `*` is any characters. */
  const char *const *renames;
  size_t rename_count;
  /* Other than 0, with `training`: tensors of floats in arguments have gradients, too. */
  int32_t input_gradients;
  /* A data file whose words make the vocabularies that are not given, as the entry reads them and
   * as `sheaf train` does; NULL: none. `words_format`: as sheaf_read_options (train.h) has it. */
  const char *words_of;
  const char *words_format;
  const char *target; /* a back end of `sheaf help`'s --target; NULL: "cpu" */
  /* Bytes of the data caches that plans are made for, which change no bit of a result; 0: those of
   * this machine, or, with target_cpu, those that such processors mostly have. */
  uint64_t target_cache_l1, target_cache_l2;
  sheaf_source *source; /* what was built, instead of a path or a text; it has its own name */
} sheaf_compile_options;

/* ---- What is wrong with it ------------------------------------------------------------------ */

typedef struct sheaf_diagnostics sheaf_diagnostics;

typedef enum sheaf_severity { SHEAF_ERROR = 0, SHEAF_WARNING = 1, SHEAF_NOTE = 2 } sheaf_severity;

/* Lines and columns count from 1, columns in code points; the end is behind the last one. */
typedef struct sheaf_diagnostic {
  size_t size;      /* sizeof(sheaf_diagnostic), to be set by the caller */
  int32_t severity; /* a sheaf_severity */
  const char *file; /* NULL: of no place; then all numbers are 0 */
  int64_t line, column, end_line, end_column;
  const char *message; /* one phrase */
  const char *help;    /* the likely remedy, or "" */
  const char *text;    /* as the command `sheaf` prints it, with the line of the source */
  size_t note_count;   /* of further places */
} sheaf_diagnostic;

SHEAF_API size_t sheaf_diagnostics_count(const sheaf_diagnostics *diagnostics);
/* In the order of the source. */
SHEAF_API sheaf_status sheaf_diagnostics_get(const sheaf_diagnostics *diagnostics, size_t number,
                                             sheaf_diagnostic *diagnostic);
SHEAF_API sheaf_status sheaf_diagnostics_note(const sheaf_diagnostics *diagnostics, size_t number,
                                              size_t note, sheaf_diagnostic *diagnostic);
/* All of them as the command prints them; "" when there are none. */
SHEAF_API const char *sheaf_diagnostics_text(const sheaf_diagnostics *diagnostics);
SHEAF_API void sheaf_diagnostics_release(sheaf_diagnostics *diagnostics);

/* ---- Compiling ------------------------------------------------------------------------------ */

/* `diagnostics` may be null; else it is always given some, to be released by the caller: errors
 * when the status is SHEAF_NOT_COMPILED, warnings when it is SHEAF_OK. Dims, vocabularies or
 * weights that the source does not know are SHEAF_INVALID, files that cannot be read
 * SHEAF_NOT_READABLE. */
SHEAF_API sheaf_status sheaf_compile(const sheaf_compile_options *options, sheaf_model **model,
                                     sheaf_diagnostics **diagnostics);

/* Opens the compiler's library: that of `path`; or, when it is null, the one that stands beside
 * libsheaf_runtime, else where the system finds it. sheaf_compile() does the latter by itself. Once
 * it is open, it stays so. SHEAF_NO_COMPILER when there is none. */
SHEAF_API sheaf_status sheaf_compiler_open(const char *path);

/* Writes an artefact, as `sheaf build` does: complete, or not at all. One of a model for training
 * can be trained where it is opened (train.h). */
SHEAF_API sheaf_status sheaf_model_save(const sheaf_model *model, const char *path);

/* ---- What became of it ---------------------------------------------------------------------- */

typedef struct sheaf_explain_options {
  size_t size; /* sizeof(sheaf_explain_options) */
  /* A mini-batch that is to be told of, launch by launch: instances of one model that the same
   * options gave, and a session, which has its weights and says on how many threads and within
   * which limits. Both are null: the model alone. They are not to be used until the call ends. */
  sheaf_session *session;
  sheaf_batch *batch;
  uint32_t repetitions; /* of the mini-batch, the shortest is told; 0: 9 */
} sheaf_explain_options;

typedef struct sheaf_explanation sheaf_explanation;

/* What `sheaf explain` says of the model, and with a mini-batch what it does. `what` may be null.
 * `diagnostics` as in sheaf_compile(). */
SHEAF_API sheaf_status sheaf_explain(const sheaf_compile_options *options,
                                     const sheaf_explain_options *what,
                                     sheaf_explanation **explanation,
                                     sheaf_diagnostics **diagnostics);
/* As it is printed; as JSON, docs/reports.md has its form; as a page in HTML that needs no network,
 * "" without a mini-batch. They live as long as the explanation. */
SHEAF_API const char *sheaf_explanation_text(const sheaf_explanation *explanation);
SHEAF_API const char *sheaf_explanation_json(const sheaf_explanation *explanation);
SHEAF_API const char *sheaf_explanation_page(const sheaf_explanation *explanation);
SHEAF_API void sheaf_explanation_release(sheaf_explanation *explanation);

#ifdef __cplusplus
}
#endif

#endif /* SHEAF_COMPILER_H */
