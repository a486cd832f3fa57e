/* sheaf.h - Runs models that were compiled
 *
 * The C interface of libsheaf_runtime, which has no compiler in it; compiler.h opens one. The order
 * of things:
 *
 *   sheaf_model    an artefact that was opened, or what sheaf_compile() made; immutable
 *   sheaf_values   instances for it and the values that they are made of; immutable
 *   sheaf_batch    instances that run together: of such, or made value by value
 *   sheaf_session  threads and a byte budget; runs batches of any number of models
 *   sheaf_engine   runs instances of one model that come and go
 *   sheaf_kept     what one of them gave, kept there for others to begin from
 *   sheaf_workers  threads that several sessions and engines share
 *   sheaf_budget   bytes that several engines share
 *   sheaf_executor steps several engines in turns
 *   sheaf_result   what became of each instance of a batch; immutable
 *   sheaf_stop     ends runs early, from any thread
 *
 * Every function may be called from any thread at any time. Calls that change one batch, and runs
 * of one session, wait for each other; sessions run beside each other.
 *
 * Functions that can fail return a status. Then sheaf_error_message() says why, in the thread that
 * called, and nothing was changed or returned. Pointers that must not be null are checked where a
 * status can say so; the other functions take null for an object without anything in it.
 *
 * Handles are released once, by the function of their kind (null is fine), in any order: what still
 * needs an object keeps it alive. Texts that are returned live as long as the object that they were
 * asked of.
 *
 * Structs of options begin with `size`, which is set to the sizeof of the struct; what else is zero
 * stands for the default. They grow at the end, padding included: a caller that was compiled with
 * an older header gives a shorter one, whose missing members count as zero; one that was compiled
 * with a newer header may give a longer one, as long as the members that this library lacks are
 * zero.
 *
 * Running an artefact is trusting its author, as with a shared library. Opening one is not:
 * whatever is in the file, it is checked before anything of it is run. See docs/artefacts.md.
 */
#ifndef SHEAF_SHEAF_H
#define SHEAF_SHEAF_H

#include "sheaf/dlpack.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SHEAF_API __attribute__((visibility("default")))
#else
#define SHEAF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sheaf_status {
  SHEAF_OK = 0,
  SHEAF_INVALID = 1,         /* an argument: a null, a value of another type, a wrong index */
  SHEAF_NOT_READABLE = 2,    /* the file, as the system says */
  SHEAF_NOT_AN_ARTEFACT = 3, /* another kind of file */
  SHEAF_DAMAGED = 4,         /* cut short, changed, inconsistent */
  SHEAF_NEWER = 5,           /* made by a Sheaf whose artefacts this library does not know */
  SHEAF_OTHER_MACHINE = 6,   /* code for another processor */
  SHEAF_DIGEST = 7,          /* not the file whose SHA-256 was asked for */
  SHEAF_NO_MEMORY = 8,       /* the machine, or the session's limit */
  SHEAF_INTERNAL = 9,        /* a bug of Sheaf's */
  SHEAF_NO_COMPILER = 10,    /* compiling needs libsheaf_compiler (compiler.h) */
  SHEAF_NOT_COMPILED = 11,   /* the source has errors, which diagnostics tell */
  SHEAF_STOPPED = 12         /* by a stop */
} sheaf_status;

/* What went wrong in the last call of this thread that failed; "" before any. Valid until the
 * thread's next call that fails. */
SHEAF_API const char *sheaf_error_message(void);

typedef struct sheaf_error {
  size_t size;         /* sizeof(sheaf_error), to be set by the caller */
  int32_t status;      /* a sheaf_status; SHEAF_OK before any */
  const char *text;    /* sheaf_error_message() */
  const char *message; /* of it what is wrong, without the place */
  const char *file;    /* in which it is wrong, or a text's name; NULL: none is to blame */
  int64_t line;        /* from 1; 0: not known, as of all numbers here */
  int64_t column;      /* from 1, in bytes; of a source that does not compile in code points */
  int64_t instance;    /* of data that are read, from 0; -1: none */
  const char *field;   /* in it, as a path such as "$.words[2]"; NULL: none */
} sheaf_error;
/* The same as a struct; texts are valid as long. Further errors of a source are diagnostics
 * (compiler.h). */
SHEAF_API sheaf_status sheaf_error_last(sheaf_error *error);

/* Of the library: "0.1.0". */
SHEAF_API const char *sheaf_version(void);

typedef struct sheaf_model sheaf_model;
typedef struct sheaf_values sheaf_values;
typedef struct sheaf_value_builder sheaf_value_builder;
typedef struct sheaf_batch sheaf_batch;
typedef struct sheaf_session sheaf_session;
typedef struct sheaf_result sheaf_result;
typedef struct sheaf_stop sheaf_stop;

/* ---- Models ----------------------------------------------------------------------------- */

typedef struct sheaf_load_options {
  size_t size;        /* sizeof(sheaf_load_options) */
  const char *sha256; /* 64 hexadecimal digits that the file must have; NULL: any */
  /* Not 0: weights are not compared with their checksums, so that a large file is open at once and
   * read as it is needed. All else is checked always. */
  int skip_weight_checksums;
  sheaf_stop *stop; /* requested, gives the loading up: SHEAF_STOPPED; NULL: nothing */
} sheaf_load_options;

/* Opens an artefact; `options` may be null. The file must not be changed while it is open: put a
 * new one in its place by renaming. */
SHEAF_API sheaf_status sheaf_model_load(const char *path, const sheaf_load_options *options,
                                        sheaf_model **model);
SHEAF_API void sheaf_model_release(sheaf_model *model);

SHEAF_API const char *sheaf_model_name(const sheaf_model *model);
/* The function that an instance is an argument list of. */
SHEAF_API const char *sheaf_model_entry(const sheaf_model *model);
/* LLVM's name of the processor that the code was made for. */
SHEAF_API const char *sheaf_model_cpu(const sheaf_model *model);
/* A dim of the model, -1 when it has none of this name. */
SHEAF_API int64_t sheaf_model_dim(const sheaf_model *model, const char *name);

/* ---- Types: numbers that mean something for one model ------------------------------------ */

typedef uint32_t sheaf_type;
#define SHEAF_NO_TYPE UINT32_MAX

typedef enum sheaf_kind {
  SHEAF_INT = 0,
  SHEAF_FLOAT = 1, /* a double */
  SHEAF_BOOL = 2,
  SHEAF_TOKEN = 3,
  SHEAF_TENSOR = 4,
  SHEAF_LIST = 5,
  SHEAF_TUPLE = 6,
  SHEAF_DATA = 7
} sheaf_kind;

SHEAF_API size_t sheaf_model_argument_count(const sheaf_model *model);
SHEAF_API const char *sheaf_model_argument_name(const sheaf_model *model, size_t argument);
SHEAF_API sheaf_type sheaf_model_argument_type(const sheaf_model *model, size_t argument);
SHEAF_API sheaf_type sheaf_model_result_type(const sheaf_model *model);
/* Of what instances emit; SHEAF_NO_TYPE when they emit nothing. */
SHEAF_API sheaf_type sheaf_model_emitted_type(const sheaf_model *model);
/* The type that the source writes so ("Tree", "list<token>"), SHEAF_NO_TYPE when the arguments and
 * the result have none such in them. */
SHEAF_API sheaf_type sheaf_model_find_type(const sheaf_model *model, const char *text);

/* What follows answers 0, -1, SHEAF_NO_TYPE or null for what a type does not have. */
SHEAF_API sheaf_kind sheaf_type_kind(const sheaf_model *model, sheaf_type type);
/* As the source writes it. */
SHEAF_API const char *sheaf_type_text(const sheaf_model *model, sheaf_type type);
/* Of a list the one type of its elements; of a tuple those of its parts. */
SHEAF_API size_t sheaf_type_child_count(const sheaf_model *model, sheaf_type type);
SHEAF_API sheaf_type sheaf_type_child(const sheaf_model *model, sheaf_type type, size_t child);
/* Of data. Constructors are numbered in the order of the source. */
SHEAF_API size_t sheaf_type_constructor_count(const sheaf_model *model, sheaf_type type);
SHEAF_API const char *sheaf_type_constructor_name(const sheaf_model *model, sheaf_type type,
                                                  size_t constructor);
SHEAF_API int sheaf_type_find_constructor(const sheaf_model *model, sheaf_type type,
                                          const char *name);
SHEAF_API size_t sheaf_type_field_count(const sheaf_model *model, sheaf_type type,
                                        size_t constructor);
SHEAF_API const char *sheaf_type_field_name(const sheaf_model *model, sheaf_type type,
                                            size_t constructor, size_t field);
SHEAF_API sheaf_type sheaf_type_field_type(const sheaf_model *model, sheaf_type type,
                                           size_t constructor, size_t field);
/* Of tensors. An extent of -1 is each instance's own. */
SHEAF_API size_t sheaf_type_rank(const sheaf_model *model, sheaf_type type);
SHEAF_API int64_t sheaf_type_extent(const sheaf_model *model, sheaf_type type, size_t axis);
SHEAF_API const char *sheaf_type_extent_name(const sheaf_model *model, sheaf_type type,
                                             size_t axis);
/* Bytes that a value has more in an engine when each tensor in it whose first extent is the
 * instance's own gets a row more: of keys and values those of a token. -1 where the type does not
 * say. What is held has room for more rows beside: docs/design/growing.md. */
SHEAF_API int64_t sheaf_type_growth(const sheaf_model *model, sheaf_type type);
SHEAF_API DLDataType sheaf_type_dtype(const sheaf_model *model, sheaf_type type);
/* Of tokens and tensors of tokens: the name of the vocabulary, "" for that of `token`. */
SHEAF_API const char *sheaf_type_vocabulary(const sheaf_model *model, sheaf_type type);

/* Vocabularies by name. Words that are not there are 0, `<unk>`. A vocabulary may have a size and
 * no words: then its tokens are numbers, and every word is 0. */
SHEAF_API int64_t sheaf_vocabulary_size(const sheaf_model *model, const char *name);
SHEAF_API int64_t sheaf_vocabulary_token(const sheaf_model *model, const char *name,
                                         const char *word);
/* Null when there is none. The text ends with a zero. */
SHEAF_API const char *sheaf_vocabulary_word(const sheaf_model *model, const char *name,
                                            int64_t token);
/* 16 hexadecimal digits; equal vocabularies, equal hashes. Weights' metadata hold the same. */
SHEAF_API const char *sheaf_vocabulary_hash(const sheaf_model *model, const char *name);

/* Vocabularies of no model, made, read or counted without a compiler, for models to be compiled
 * with (compiler.h). Immutable. */
typedef struct sheaf_words sheaf_words;

/* Of `size` words, the first of which is "<unk>"; where `words` is null, of numbers alone. */
SHEAF_API sheaf_status sheaf_words_make(const char *const *words, int64_t size, sheaf_words **made);
/* Of a file with a word a line. */
SHEAF_API sheaf_status sheaf_words_load(const char *path, sheaf_words **loaded);

typedef struct sheaf_count_options {
  size_t size;        /* sizeof(sheaf_count_options) */
  const char *name;   /* of the vocabulary, where data have words for several, as "tag" of tagged
                       * sentences; NULL: that of `token` */
  const char *format; /* one that `sheaf help formats` lists; NULL: as the file tells */
  uint64_t min_count; /* rarer words are left out; 0: none are */
  uint64_t max_size;  /* most entries, "<unk>" included; 0: any number */
  uint64_t skip_bad;  /* records that cannot be read and are left out, at most */
  sheaf_stop *stop;   /* requested, gives it up: SHEAF_STOPPED; NULL: nothing */
} sheaf_count_options;

/* Of the words in a data file, the most frequent first, as `sheaf vocab` counts them without a
 * model. `options` may be null. */
SHEAF_API sheaf_status sheaf_words_count(const char *path, const sheaf_count_options *options,
                                         sheaf_words **counted);
/* That of a model, by name. */
SHEAF_API sheaf_status sheaf_words_of_model(const sheaf_model *model, const char *name,
                                            sheaf_words **words);
SHEAF_API void sheaf_words_release(sheaf_words *words);

/* As the functions of a model's vocabularies. */
SHEAF_API int64_t sheaf_words_size(const sheaf_words *words);
SHEAF_API int64_t sheaf_words_token(const sheaf_words *words, const char *word);
SHEAF_API const char *sheaf_words_word(const sheaf_words *words, int64_t token);
SHEAF_API const char *sheaf_words_hash(const sheaf_words *words);
/* Writes the file that is read above: complete, or not at all. */
SHEAF_API sheaf_status sheaf_words_save(const sheaf_words *words, const char *path);

/* ---- Values ------------------------------------------------------------------------------- */

/* A builder makes values of a model many at a time; what it made is immutable, belongs to no batch,
 * and is shared without a copy by any number of batches, sessions, engines and threads:
 *
 *   sheaf_builder_preorder(builder, tree, &written, 64, &trees);
 *   sheaf_builder_numbers(builder, label, &labels, &numbers);
 *   sheaf_value arguments[] = {trees, numbers};
 *   sheaf_builder_instances(builder, arguments, 2, 64, NULL);
 *   sheaf_builder_finish(builder, &values);
 *
 * See docs/design/values.md. */

/* A value of one builder, or of one batch. A part may stand in many values. Of those that one call
 * of a builder makes, `*first` is the first, and value i is {first->id + i}. Where `count` values
 * are made of others, value i is made of value i from each of those on. */
typedef struct sheaf_value {
  uint64_t id;
} sheaf_value;

SHEAF_API sheaf_status sheaf_builder_create(sheaf_model *model, sheaf_value_builder **builder);
SHEAF_API void sheaf_builder_release(sheaf_value_builder *builder);

/* Ints, tokens, floats or truth values, of a tensor with one axis: ints of 8 to 64 bits, unsigned
 * ones of 8 to 32, floats of 32 or 64, kDLBool of 8. */
SHEAF_API sheaf_status sheaf_builder_numbers(sheaf_value_builder *builder, sheaf_type type,
                                             const DLTensor *numbers, sheaf_value *first);
/* Copies tensors, as sheaf_make_tensor() does. */
SHEAF_API sheaf_status sheaf_builder_tensors(sheaf_value_builder *builder, sheaf_type type,
                                             const DLTensor *const *tensors, size_t count,
                                             sheaf_value *first);
/* The parts of one tensor along its first axis. */
SHEAF_API sheaf_status sheaf_builder_unstack(sheaf_value_builder *builder, sheaf_type type,
                                             const DLTensor *stack, sheaf_value *first);
/* List i has the elements from offsets[i] to before offsets[i + 1], counted from `elements`. */
SHEAF_API sheaf_status sheaf_builder_lists(sheaf_value_builder *builder, sheaf_type type,
                                           sheaf_value elements, const uint64_t *offsets,
                                           size_t count, sheaf_value *first);
SHEAF_API sheaf_status sheaf_builder_tuples(sheaf_value_builder *builder, sheaf_type type,
                                            const sheaf_value *parts, size_t part_count,
                                            size_t count, sheaf_value *first);
SHEAF_API sheaf_status sheaf_builder_data(sheaf_value_builder *builder, sheaf_type type,
                                          size_t constructor, const sheaf_value *fields,
                                          size_t field_count, size_t count, sheaf_value *first);
/* Value i is the one at which[i], counted from `from` among those made with it. */
SHEAF_API sheaf_status sheaf_builder_select(sheaf_value_builder *builder, sheaf_value from,
                                            const uint64_t *which, size_t count,
                                            sheaf_value *first);

/* Values written one after the other, each before its parts, and those in their order. The arrays
 * are used up together. */
typedef struct sheaf_preorder {
  size_t size;           /* sizeof(sheaf_preorder); members may be added at the end */
  const uint32_t *heads; /* of data the constructor, of a list how many elements it has */
  size_t head_count;
  const int64_t *numbers; /* ints, tokens, truth values */
  size_t number_count;
  const double *floats;
  size_t float_count;
  const DLTensor *const *tensors;
  size_t tensor_count;
} sheaf_preorder;

/* `count` values of any type, as deep as memory allows. */
SHEAF_API sheaf_status sheaf_builder_preorder(sheaf_value_builder *builder, sheaf_type type,
                                              const sheaf_preorder *written, size_t count,
                                              sheaf_value *first);
/* Values of another builder that has finished; they are not copied. */
SHEAF_API sheaf_status sheaf_builder_take(sheaf_value_builder *builder, const sheaf_values *other,
                                          sheaf_value from, size_t count, sheaf_value *first);

/* `count` instances. `ids`: what sheaf_batch_add() takes; null: their numbers. */
SHEAF_API sheaf_status sheaf_builder_instances(sheaf_value_builder *builder,
                                               const sheaf_value *arguments, size_t argument_count,
                                               size_t count, const int64_t *ids);
/* All that was made. Afterwards the builder is as after being created. */
SHEAF_API sheaf_status sheaf_builder_finish(sheaf_value_builder *builder, sheaf_values **values);

SHEAF_API void sheaf_values_release(sheaf_values *values);
/* Of instances. */
SHEAF_API size_t sheaf_values_size(const sheaf_values *values);
/* Of memory. */
SHEAF_API size_t sheaf_values_bytes(const sheaf_values *values);

/* ---- Batches ------------------------------------------------------------------------------ */

SHEAF_API sheaf_status sheaf_batch_create(sheaf_model *model, sheaf_batch **batch);
SHEAF_API void sheaf_batch_release(sheaf_batch *batch);
/* Forgets all instances and values. */
SHEAF_API sheaf_status sheaf_batch_clear(sheaf_batch *batch);

/* Adds instances of these values, which stay theirs: number which[i], or i where `which` is null.
 * Of `ids` null, with their own ids. */
SHEAF_API sheaf_status sheaf_batch_add_instances(sheaf_batch *batch, const sheaf_values *values,
                                                 const uint64_t *which, size_t count,
                                                 const int64_t *ids);

/* Values of this batch, one by one. Make their parts first. */
SHEAF_API sheaf_status sheaf_make_int(sheaf_batch *batch, sheaf_type type, int64_t number,
                                      sheaf_value *value);
SHEAF_API sheaf_status sheaf_make_float(sheaf_batch *batch, sheaf_type type, double number,
                                        sheaf_value *value);
SHEAF_API sheaf_status sheaf_make_bool(sheaf_batch *batch, sheaf_type type, int truth,
                                       sheaf_value *value);
/* `token`: at least 0 and less than the vocabulary's size. */
SHEAF_API sheaf_status sheaf_make_token(sheaf_batch *batch, sheaf_type type, int64_t token,
                                        sheaf_value *value);
/* Copies a tensor of the CPU's memory, any strides, of the type's dtype and extents. Tokens are
 * 32-bit ints; truth values are of kDLBool with 8 bits. */
SHEAF_API sheaf_status sheaf_make_tensor(sheaf_batch *batch, sheaf_type type,
                                         const DLTensor *tensor, sheaf_value *value);
/* Where the type says how many elements there are ('list<int>[3]'), so many; lists of the length
 * 'n' are compared when the instance is added, as extents are. */
SHEAF_API sheaf_status sheaf_make_list(sheaf_batch *batch, sheaf_type type,
                                       const sheaf_value *elements, size_t count,
                                       sheaf_value *value);
SHEAF_API sheaf_status sheaf_make_tuple(sheaf_batch *batch, sheaf_type type,
                                        const sheaf_value *parts, size_t count, sheaf_value *value);
SHEAF_API sheaf_status sheaf_make_data(sheaf_batch *batch, sheaf_type type, size_t constructor,
                                       const sheaf_value *fields, size_t count, sheaf_value *value);

/* Adds an instance: the entry's arguments. `id` is what its random draws follow from, whatever else
 * is in the batch; errors name it. */
SHEAF_API sheaf_status sheaf_batch_add(sheaf_batch *batch, const sheaf_value *arguments,
                                       size_t count, int64_t id);
SHEAF_API size_t sheaf_batch_size(const sheaf_batch *batch);

/* ---- Sessions ----------------------------------------------------------------------------- */

/* Threads that run kernels, for any number of sessions and engines: those that run at a time divide
 * them, and one that runs alone has all. Results do not depend on it. */
typedef struct sheaf_workers sheaf_workers;

/* `threads` are at work while no more callers than that run at a time; callers' own are among them.
 * 0: 1. */
SHEAF_API sheaf_status sheaf_workers_create(uint32_t threads, sheaf_workers **workers);
SHEAF_API void sheaf_workers_release(sheaf_workers *workers);

typedef struct sheaf_session_options {
  size_t size;            /* sizeof(sheaf_session_options) */
  uint32_t threads;       /* that run kernels, the caller's included; 0: 1 */
  uint64_t memory_limit;  /* most bytes for each of its models; 0: nine tenths of the machine's */
  uint64_t fold_memory;   /* of them, most for results that are kept from one run to the next;
                           * 0: a quarter of the limit */
  uint64_t sample_seed;   /* what random draws follow from */
  uint64_t max_depth;     /* room for so many frames of one instance's recursion; 0: millions */
  uint64_t max_steps;     /* calls of recursive functions of one instance; 0: 1,000,000,000 */
  uint32_t check_results; /* other than 0: instances whose result holds NaN or infinity fail */
  sheaf_workers *workers; /* shared with others, instead of `threads`; NULL: threads of its own */
} sheaf_session_options;

/* `options` may be null. */
SHEAF_API sheaf_status sheaf_session_create(const sheaf_session_options *options,
                                            sheaf_session **session);
SHEAF_API void sheaf_session_release(sheaf_session *session);

/* Makes room for a model; the first run does it by itself. */
SHEAF_API sheaf_status sheaf_session_add(sheaf_session *session, sheaf_model *model);
/* Gives back what a model takes. */
SHEAF_API sheaf_status sheaf_session_remove(sheaf_session *session, const sheaf_model *model);

/* Runs all instances of a batch. An instance that fails does so alone: the status speaks of the
 * whole, sheaf_result_error() of each. Results do not depend on what else is in the batch. */
SHEAF_API sheaf_status sheaf_session_run(sheaf_session *session, sheaf_batch *batch,
                                         sheaf_result **result);

/* A value inside of one result. */
typedef struct sheaf_view {
  sheaf_type type;
  const int64_t *slots; /* private */
} sheaf_view;

/* Told what an instance of a run, or of an engine's request, emits, once and in order, as soon as
 * that is computed: in the thread that runs or steps, which goes on when it returns. It must
 * neither throw nor use the session or the batch, nor step; it may submit and request stops. `id`:
 * the instance's, as sheaf_batch_add() was given it. `value` is read with `result`; both end with
 * the call. Of an instance that fails, what came before may have been told. */
typedef void (*sheaf_emit_function)(void *user, int64_t id, const sheaf_result *result,
                                    sheaf_view value);

typedef struct sheaf_run_options {
  size_t size;              /* sizeof(sheaf_run_options) */
  sheaf_stop *stop;         /* what may end the run early; NULL: nothing */
  sheaf_emit_function emit; /* NULL: what instances emit is in the result alone */
  void *emit_user;          /* its first argument */
  uint64_t step;            /* of a training, from 1, that random draws follow from, too; 0: none */
} sheaf_run_options;

/* The same with options, which may be null. */
SHEAF_API sheaf_status sheaf_session_run_with(sheaf_session *session, sheaf_batch *batch,
                                              const sheaf_run_options *options,
                                              sheaf_result **result);

/* A stop ends the runs that were given it, of whichever sessions, and no others. It is requested
 * once and for good: make one for each run, or for all that shall end together. */
SHEAF_API sheaf_status sheaf_stop_create(sheaf_stop **stop);
/* Runs that were given it go on, and cannot be stopped any more. */
SHEAF_API void sheaf_stop_release(sheaf_stop *stop);
/* Returns at once; null is fine. What a run has handed to its kernels by now still ends, and the
 * run has its results if nothing was left to do. Otherwise nothing more begins: the run's status is
 * SHEAF_OK, and its instances fail with 'the run was stopped', but for such as had their results
 * already when others ran once more for want of memory. A run that waits for its session or its
 * batch fails likewise when its turn comes, and so does every later run that is given the stop. The
 * session is as good as before. */
SHEAF_API void sheaf_stop_request(sheaf_stop *stop);

/* ---- Engines ------------------------------------------------------------------------------ */

/* A batch begins and ends together. An engine is given instances one by one, while others run, and
 * hands each result out when its instance ends; what they compute at one time runs together. Their
 * results have the bits of each instance alone. An engine has no thread: whoever calls
 * sheaf_engine_step() or sheaf_engine_run() lends it one. See docs/design/engine.md. */
typedef struct sheaf_engine sheaf_engine;

/* Bytes that several engines should not exceed together. Where they are short, none begins an
 * instance beside others, and each takes the youngest back, to be begun again later. It bounds what
 * is begun; what no engine ever exceeds is the memory_limit of its own session. */
typedef struct sheaf_budget sheaf_budget;

SHEAF_API sheaf_status sheaf_budget_create(uint64_t bytes, sheaf_budget **budget);
SHEAF_API void sheaf_budget_release(sheaf_budget *budget);
/* What the engines that were given it use, as of their last steps. */
SHEAF_API uint64_t sheaf_budget_used(const sheaf_budget *budget);

/* Steps engines in turns: whichever has something to do and had the least time for its share. Its
 * engines are made with it. It has no threads either: any number may run it, each of which steps
 * one engine at a time, and they sleep while no engine has anything to do. */
typedef struct sheaf_executor sheaf_executor;

/* Told in the thread that steps that a step of an engine failed, as the error functions say there.
 * It must neither throw nor step; it may submit and request stops. The other engines' turns come as
 * ever, and this one's too, unless each of its steps would fail. */
typedef void (*sheaf_failed_function)(void *user, sheaf_engine *engine, sheaf_status status);

typedef struct sheaf_executor_options {
  size_t size;                  /* sizeof(sheaf_executor_options) */
  sheaf_failed_function failed; /* NULL: then sheaf_executor_step() and _run() fail */
  void *failed_user;            /* its first argument */
} sheaf_executor_options;

/* `options` may be null. */
SHEAF_API sheaf_status sheaf_executor_create(const sheaf_executor_options *options,
                                             sheaf_executor **executor);
/* When no thread steps. Its engines hold it, but nothing steps them any more. */
SHEAF_API void sheaf_executor_release(sheaf_executor *executor);
/* One engine's turn. `more`: whether any engine has anything left to do. */
SHEAF_API sheaf_status sheaf_executor_step(sheaf_executor *executor, int *more);
/* Turns, and waiting for what is submitted to any engine, until a stop is requested. */
SHEAF_API sheaf_status sheaf_executor_run(sheaf_executor *executor, sheaf_stop *stop);

typedef struct sheaf_engine_options {
  size_t size;           /* sizeof(sheaf_engine_options) */
  uint32_t most_running; /* instances that have begun and not ended; 0: 512 */
  /* Nanoseconds that what no read needs may wait for other instances to end; 0: 200,000. */
  uint64_t linger;
  /* Nanoseconds of kernels between two looks for stops and deadlines; 0: 2,000,000. */
  uint64_t slice;
  sheaf_budget *budget;     /* shared with other engines; NULL: none */
  sheaf_executor *executor; /* that steps it, and no one else does; NULL: none */
  uint64_t share;           /* of the executor's time, beside those of others; 0: 1 */
} sheaf_engine_options;

typedef struct sheaf_request_options {
  size_t size;            /* sizeof(sheaf_request_options) */
  sheaf_stop *stop;       /* requested, the instances fail unless they have ended; NULL: nothing */
  int32_t priority;       /* higher ones begin first */
  uint64_t timeout;       /* nanoseconds from now on, after which they fail; 0: any */
  uint64_t max_depth;     /* as of a session, and no more than its own; 0: the session's */
  uint64_t max_steps;     /* as of a session; 0: the session's */
  uint64_t max_row_bytes; /* of all tensors that an instance computes; 0: any */
  sheaf_emit_function emit; /* all that an instance emits before its `done`, if it ends well; NULL:
                             * what instances emit is in their results alone */
  void *emit_user;          /* its first argument */
  uint32_t keep;            /* a sheaf_keep: whether the values stay in the engine */
} sheaf_request_options;

typedef enum sheaf_keep {
  SHEAF_KEEP_NOTHING = 0, /* results are copies */
  SHEAF_KEEP_BOTH = 1,    /* the values stay, too: sheaf_result_kept() */
  SHEAF_KEEP_ONLY = 2     /* the same without the copies */
} sheaf_keep;

/* Called once for each instance, in the thread that steps: `result` has that one instance, and is
 * the callee's to release. It may submit and request stops; it must not step. */
typedef void (*sheaf_done_function)(void *user, int64_t id, sheaf_result *result);

/* `session_options` and `options` may be null. Results are not checked for NaN (check_results). */
SHEAF_API sheaf_status sheaf_engine_create(sheaf_model *model,
                                           const sheaf_session_options *session_options,
                                           const sheaf_engine_options *options,
                                           sheaf_engine **engine);
/* When no thread steps; of an executor's engine, waits until none does, and is not for its own
 * callbacks. Instances that have not ended are dropped: `done` is not called. */
SHEAF_API void sheaf_engine_release(sheaf_engine *engine);

/* Submits the instances of a batch, and takes them and their values from it: afterwards it is as
 * after sheaf_batch_clear(). All of them, or none when it fails. Does not wait for what runs.
 * `options` may be null. */
SHEAF_API sheaf_status sheaf_engine_submit(sheaf_engine *engine, sheaf_batch *batch,
                                           const sheaf_request_options *options,
                                           sheaf_done_function done, void *user);

/* A round: begins instances, runs them until all wait, computes, hands out results. `more`: whether
 * there is anything left to do, until the next submit. */
SHEAF_API sheaf_status sheaf_engine_step(sheaf_engine *engine, int *more);
/* Rounds, and waiting for what is submitted, until a stop is requested. */
SHEAF_API sheaf_status sheaf_engine_run(sheaf_engine *engine, sheaf_stop *stop);
/* Instances that have not begun. */
SHEAF_API size_t sheaf_engine_waiting(const sheaf_engine *engine);

/* A value that an instance gave, or a part of it, in the engine that made it: instances which it is
 * an argument of begin where that one ended, and its tensors are not copied. It takes memory of the
 * engine, which never takes it away, until all handles of it are released and no instance is left
 * that begins from it. An instance that does not fit beside such fails, and its message says how
 * much is kept. See docs/design/kept-values.md. */
typedef struct sheaf_kept sheaf_kept;

/* Of a result of an engine; an error where the request did not ask for it, or the instance failed.
 * The result holds it, too, until it is released. */
SHEAF_API sheaf_status sheaf_result_kept(const sheaf_result *result, size_t instance,
                                         sheaf_kept **kept);
/* At any time, also when the engine is gone. */
SHEAF_API void sheaf_kept_release(sheaf_kept *kept);
SHEAF_API sheaf_type sheaf_kept_type(const sheaf_kept *kept);
/* Of all that is held for it, with room for tensors that grow, and what others share with it. */
SHEAF_API uint64_t sheaf_kept_bytes(const sheaf_kept *kept);
/* Other than 0: instances can begin from it, since the engine is there with the same weights. */
SHEAF_API int sheaf_kept_is_there(const sheaf_kept *kept);
/* A part of a tuple; it holds the whole. */
SHEAF_API sheaf_status sheaf_kept_part(const sheaf_kept *kept, size_t part, sheaf_kept **handle);
/* The value of a batch that stands for it: an argument of instances as a whole, and no part of
 * others. `type`: the argument's, which is its own but for names of extents. Only its engine runs
 * the batch. */
SHEAF_API sheaf_status sheaf_make_kept(sheaf_batch *batch, sheaf_type type, const sheaf_kept *kept,
                                       sheaf_value *value);
/* How many values an engine keeps, and their bytes: what several share counts once. */
SHEAF_API size_t sheaf_engine_kept_values(const sheaf_engine *engine);
SHEAF_API uint64_t sheaf_engine_kept_bytes(const sheaf_engine *engine);

/* ---- Results ------------------------------------------------------------------------------ */

SHEAF_API void sheaf_result_release(sheaf_result *result);
SHEAF_API size_t sheaf_result_size(const sheaf_result *result);
/* Why an instance has no value; null when it has one. */
SHEAF_API const char *sheaf_result_error(const sheaf_result *result, size_t instance);

typedef enum sheaf_cause {
  SHEAF_ENDED = 0,             /* it has a value */
  SHEAF_PROGRAM = 1,           /* a check, an index: it fails wherever it runs */
  SHEAF_LIMIT = 2,             /* of steps, depth or bytes; or the run was stopped */
  SHEAF_TOO_LITTLE_MEMORY = 3, /* even alone */
  SHEAF_DEADLINE = 4,          /* of its request */
  SHEAF_CANCELLED = 5          /* by its request's stop */
} sheaf_cause;

/* What kind of reason that is. */
SHEAF_API sheaf_cause sheaf_result_cause(const sheaf_result *result, size_t instance);

typedef struct sheaf_failure {
  size_t size;         /* sizeof(sheaf_failure), to be set by the caller */
  int32_t cause;       /* a sheaf_cause */
  int64_t instance;    /* its id; -1: nothing has failed */
  const char *text;    /* sheaf_result_error(); NULL: nothing has failed */
  const char *message; /* of it what went wrong, without the place */
  const char *file;    /* of the program, where it went wrong; NULL: nowhere in it */
  int64_t line;        /* from 1 */
  int64_t column;      /* from 1; 0: not known */
  const char *place;   /* where the instance was read, as sheaf_values_place(); NULL: not known */
} sheaf_failure;
/* All of it. Texts live as long as the result. */
SHEAF_API sheaf_status sheaf_result_failure(const sheaf_result *result, size_t instance,
                                            sheaf_failure *failure);

SHEAF_API sheaf_status sheaf_result_value(const sheaf_result *result, size_t instance,
                                          sheaf_view *view);
/* The list of what an instance emitted, in the order of the program. An error for a model that
 * emits nothing. */
SHEAF_API sheaf_status sheaf_result_emitted(const sheaf_result *result, size_t instance,
                                            sheaf_view *view);

/* Of ints, tokens and truth values. */
SHEAF_API sheaf_status sheaf_view_int(const sheaf_result *result, sheaf_view view, int64_t *number);
SHEAF_API sheaf_status sheaf_view_float(const sheaf_result *result, sheaf_view view,
                                        double *number);
/* Of data. */
SHEAF_API sheaf_status sheaf_view_constructor(const sheaf_result *result, sheaf_view view,
                                              size_t *constructor);
/* Elements of a list, parts of a tuple, fields of data. */
SHEAF_API sheaf_status sheaf_view_count(const sheaf_result *result, sheaf_view view, size_t *count);
SHEAF_API sheaf_status sheaf_view_child(const sheaf_result *result, sheaf_view view, size_t child,
                                        sheaf_view *part);
/* A tensor in the CPU's memory, row-major and dense, to be read only; the caller calls its deleter.
 * It may outlive the result. */
SHEAF_API sheaf_status sheaf_view_tensor(const sheaf_result *result, sheaf_view view,
                                         DLManagedTensor **tensor);
/* The same of many instances as one tensor, whose first axis is theirs: all, or these `count` of
 * them in this order. `path`: which part of the result, when that is a tuple, which part of this,
 * and so on; null when it is the result. It must be a tensor that has the same extents for all of
 * them, or a number: ints and tokens become ints of 64 bits, floats doubles, truth values bytes.
 * None may have failed. Nothing is copied where the type says the extents and instances follow each
 * other. */
SHEAF_API sheaf_status sheaf_result_stack(const sheaf_result *result, const size_t *instances,
                                          size_t count, const size_t *path, size_t length,
                                          DLManagedTensor **tensor);

#ifdef __cplusplus
}
#endif

#endif /* SHEAF_SHEAF_H */
