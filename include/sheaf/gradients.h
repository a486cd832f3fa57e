/* gradients.h - Gradients of what was run, and steps by them
 *
 * A model that was compiled with `training` (compiler.h) is run by a session like any other; then
 * the session goes back, and gradients of weights and of inputs are there:
 *
 *   sheaf_session_run(session, batch, &losses);
 *   sheaf_session_backward(session, losses, NULL, 0, &gradients);
 *   sheaf_optimizer_step(optimizer, gradients, 1e-3, 1.0 / 64, NULL);
 *
 * The entry may be a loss, whose result is f32 without axes, or give any value: then cotangents say
 * what arrives at the tensors in it. Sums over instances and elements have one order, which follows
 * from the batch: the same bits on any number of threads. See docs/embedding.md.
 */
#ifndef SHEAF_GRADIENTS_H
#define SHEAF_GRADIENTS_H

#include "sheaf/sheaf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Weights ------------------------------------------------------------------------------ */

/* The weights of a model by number, in the order of the source; of layers `layer.w`. */
SHEAF_API size_t sheaf_model_weight_count(const sheaf_model *model);
/* Null for a number that there is not. */
SHEAF_API const char *sheaf_model_weight_name(const sheaf_model *model, size_t weight);
SHEAF_API size_t sheaf_model_weight_rank(const sheaf_model *model, size_t weight);
SHEAF_API int64_t sheaf_model_weight_extent(const sheaf_model *model, size_t weight, size_t axis);
SHEAF_API DLDataType sheaf_model_weight_dtype(const sheaf_model *model, size_t weight);

/* A session begins with the weights that the model came with, and changes its own. A copy of one of
 * them, row-major. */
SHEAF_API sheaf_status sheaf_session_weight(sheaf_session *session, sheaf_model *model,
                                            const char *name, DLManagedTensor **tensor);
/* Copies a tensor, any strides, of the weight's dtype and extents. */
SHEAF_API sheaf_status sheaf_session_set_weight(sheaf_session *session, sheaf_model *model,
                                                const char *name, const DLTensor *tensor);

/* ---- Files of weights --------------------------------------------------------------------- */

/* Of weights that have a row for each word of a vocabulary. These structs do not grow. */
typedef struct sheaf_word_table {
  const char *weight;     /* its name */
  const char *vocabulary; /* NULL: that of `token` */
} sheaf_word_table;

typedef struct sheaf_load_weights_options {
  size_t size; /* sizeof(sheaf_load_weights_options) */
  /* What weights are called: "FROM=TO", the first that matches; `*` is any characters. An error for
   * one that is for no tensor of the file. */
  const char *const *renames;
  size_t rename_count;
  int32_t partial; /* other than 0: weights that the file lacks stay as they are */
  int32_t strict;  /* other than 0: tensors that no weight takes are an error */
  /* Weights whose names match one of these patterns stay as they are, whatever the file has. An
   * error for one that none matches. */
  const char *const *fresh;
  size_t fresh_count;
  /* With `partial`: these take rows by word, of a file with another vocabulary, whose words lie
   * beside it, or of vectors of words as text (docs/data.md). Rows of words that it lacks stay. */
  const sheaf_word_table *tables;
  size_t table_count;
  /* Requested, gives it up after the weight that is being taken: SHEAF_STOPPED; those before stay
   * taken. NULL: nothing. */
  sheaf_stop *stop;
} sheaf_load_weights_options;

/* What became of a file. */
typedef struct sheaf_loaded_weights sheaf_loaded_weights;

typedef enum sheaf_weights_list {
  SHEAF_WEIGHTS_MISSING = 0, /* weights that the file gave nothing */
  SHEAF_WEIGHTS_UNUSED = 1,  /* tensors of the file that no weight takes, "name: type" */
  SHEAF_WEIGHTS_WORDS = 2    /* of tables those that the file lacks, "weight: word" */
} sheaf_weights_list;

/* Gives a model in this session the weights of a file: safetensors, an index of several, a
 * directory, a checkpoint of a training, as `--weights` takes them; converted to the weights'
 * types. All of the file is looked at first: names, shapes, types, vocabularies. SHEAF_INVALID says
 * what of it does not fit, SHEAF_NOT_READABLE names a file that cannot be read, and then nothing
 * was changed. `options` and `loaded` may be null. Needs no compiler; what else files may call a
 * weight is known of models that were compiled here. */
SHEAF_API sheaf_status sheaf_session_load_weights(sheaf_session *session, sheaf_model *model,
                                                  const char *path,
                                                  const sheaf_load_weights_options *options,
                                                  sheaf_loaded_weights **loaded);
SHEAF_API void sheaf_loaded_weights_release(sheaf_loaded_weights *loaded);
/* Of one of the lists, `which` being a sheaf_weights_list. Null for a number that there is not. */
SHEAF_API size_t sheaf_loaded_weights_count(const sheaf_loaded_weights *loaded, int32_t which);
SHEAF_API const char *sheaf_loaded_weights_name(const sheaf_loaded_weights *loaded, int32_t which,
                                                size_t number);
/* "103 tensors are converted, F16 to f32", or "". */
SHEAF_API const char *sheaf_loaded_weights_conversions(const sheaf_loaded_weights *loaded);

typedef struct sheaf_save_weights_options {
  size_t size; /* sizeof(sheaf_save_weights_options) */
  int32_t
      vocabularies; /* other than 0: their words as well, in files beside it that commands find */
} sheaf_save_weights_options;

/* Writes the weights that a model has in this session to a safetensors file, complete or not at
 * all, which `--weights` takes. `options` may be null. */
SHEAF_API sheaf_status sheaf_session_save_weights(sheaf_session *session, sheaf_model *model,
                                                  const char *path,
                                                  const sheaf_save_weights_options *options);

/* ---- Weights that stay -------------------------------------------------------------------- */

/* Weights whose names match, `*` being any characters, have no gradients in this session until they
 * are named to sheaf_session_unfreeze(): they are not computed. An error when none matches. */
SHEAF_API sheaf_status sheaf_session_freeze(sheaf_session *session, sheaf_model *model,
                                            const char *pattern);
SHEAF_API sheaf_status sheaf_session_unfreeze(sheaf_session *session, sheaf_model *model,
                                              const char *pattern);

/* ---- Going back --------------------------------------------------------------------------- */

/* What arrives at one part of the results of some instances: a gradient of what is computed from
 * it. These structs do not grow. */
typedef struct sheaf_cotangent {
  const size_t *instances; /* these, by their places in the result; NULL: all of them, in order */
  size_t count;
  /* Which part, from the outside in: a part of a tuple, an element of a list, a field of data, as
   * sheaf_view_child() counts them. NULL: the part is the result. It is a tensor of floats. */
  const size_t *path;
  size_t length;
  /* Of 32-bit floats, any strides, with one axis more than the part: the first is the instances'.
   * Rows of instances that failed are not read. */
  const DLTensor *tensor;
} sheaf_cotangent;

/* Gradients of a run; or sums of such. */
typedef struct sheaf_gradients sheaf_gradients;

/* The gradients of the sum of all cotangents, each times its part of the results, by weights and
 * inputs. Cotangents of one part add up; a part without any counts nothing. `cotangents` null, of a
 * loss: that of each instance counts 1. Instances that failed have no part in it.
 *
 * `result`: of a run of this session, with the weights as they still are; as often and in any
 * order. A result that is held when the session runs its model again keeps what it was computed
 * from, rows and records, until it and gradients from it are released, and counts against the
 * memory limit; tensors that it handed out do not keep that. From the last run before a measure of
 * the model, or an event of its training (train.h), there is no way back then. The gradients are
 * valid until the session runs, or goes back, with that model again; the next step with them, or
 * sheaf_gradients_add(), comes before. SHEAF_NO_MEMORY when the memory limit does not hold them:
 * fewer instances may do. */
SHEAF_API sheaf_status sheaf_session_backward(sheaf_session *session, const sheaf_result *result,
                                              const sheaf_cotangent *cotangents, size_t count,
                                              sheaf_gradients **gradients);
SHEAF_API void sheaf_gradients_release(sheaf_gradients *gradients);

/* The gradient of a weight: a copy, of the weight's extents, zero where nothing depends on it.
 *
 * Of a table with two axes of which only some rows were read, only these have one. If `indices` is
 * not null, `*indices` is given their numbers, 64-bit ints, ascending, and `*tensor` has these rows
 * alone; of other weights `*indices` is null then. */
SHEAF_API sheaf_status sheaf_gradients_weight(const sheaf_gradients *gradients, const char *name,
                                              DLManagedTensor **tensor, DLManagedTensor **indices);

/* The gradients of an argument of all instances, of a model that was compiled with
 * `input_gradients`: as results are, with values shaped like the argument. In place of each tensor
 * of floats stands its gradient, zero where nothing depends on it; what else there is (ints,
 * tokens, lists and their lengths, constructors) is as it was given. So sheaf_result_stack() gives
 * one array for a tensor of all instances, and sheaf_view_child() goes into lists and trees. An
 * instance that failed has none. What an instance's are depends on nothing else in the batch. */
SHEAF_API sheaf_status sheaf_gradients_argument(const sheaf_gradients *gradients, size_t argument,
                                                sheaf_result **result);

/* Zero, for the weights of a model: for gradients of several runs that make one step together. */
SHEAF_API sheaf_status sheaf_gradients_create(sheaf_model *model, sheaf_gradients **sum);
/* Adds gradients to a sum, which outlives the run. Sums have no gradients of arguments. */
SHEAF_API sheaf_status sheaf_gradients_add(sheaf_gradients *sum, const sheaf_gradients *more);
/* Makes a sum zero. */
SHEAF_API sheaf_status sheaf_gradients_clear(sheaf_gradients *sum);

/* ---- Learning rates ----------------------------------------------------------------------- */

/* As a training has them (train.h). */
typedef struct sheaf_rate_options {
  size_t size;          /* sizeof(sheaf_rate_options) */
  double learning_rate; /* 0: 0.001; below 0: 0 */
  const char *schedule; /* constant, linear or cosine; NULL: constant */
  uint64_t warmup;      /* steps over which the rate grows */
  uint64_t steps;       /* of all; linear and cosine would be 0 at the step after them */
} sheaf_rate_options;

/* The rate of a step, from 0. `options` may be null. */
SHEAF_API sheaf_status sheaf_learning_rate(const sheaf_rate_options *options, uint64_t step,
                                           double *rate);

/* ---- Steps -------------------------------------------------------------------------------- */

/* What the weights that match have of their own; the first pattern that matches one counts. These
 * structs do not grow. */
typedef struct sheaf_weight_update {
  const char *pattern; /* of names; `*` is any characters */
  double rate;         /* the learning rate is times this; 0: times 1; below 0: times 0 */
  double weight_decay; /* instead of that of the options; 0: that; below 0: none */
} sheaf_weight_update;

/* In all numbers 0 stands for the default, and one below 0 for 0. */
typedef struct sheaf_optimizer_options {
  size_t size;         /* sizeof(sheaf_optimizer_options) */
  const char *name;    /* one that `sheaf help optimisers` lists, as "sgd"; NULL: "adam" */
  double momentum;     /* of momentum; 0: 0.9 */
  double beta1;        /* of adam, adamw and lamb; 0: 0.9 */
  double beta2;        /* likewise; 0: 0.999 */
  double decay;        /* of the squares, of rmsprop; 0: 0.99 */
  double epsilon;      /* added to the root of squares; 0: 1e-8 */
  double weight_decay; /* added to the gradient, or, with adamw and lamb, apart from it */
  double clip;         /* most length of all gradients together; 0: no limit */
  const sheaf_weight_update *updates; /* `update_count` of them */
  size_t update_count;
} sheaf_optimizer_options;

/* Changes the weights of a model in one session, and remembers means from step to step. */
typedef struct sheaf_optimizer sheaf_optimizer;

/* `options` may be null. */
SHEAF_API sheaf_status sheaf_optimizer_create(sheaf_session *session, sheaf_model *model,
                                              const sheaf_optimizer_options *options,
                                              sheaf_optimizer **optimizer);
SHEAF_API void sheaf_optimizer_release(sheaf_optimizer *optimizer);

typedef struct sheaf_step_report {
  size_t size;     /* sizeof(sheaf_step_report), to be set by the caller */
  double norm;     /* the length of all gradients together, times `scale`, before it was cut */
  int32_t skipped; /* other than 0: the gradients held NaN or infinity, and nothing was changed */
  int32_t changed; /* other than 0: there was a gradient to change weights by */
} sheaf_step_report;

/* Changes the weights by `scale` times gradients of a run of this session and model, or a sum of
 * such. `scale`: 1 / the number of instances makes a mean of their losses. `report` may be null. */
SHEAF_API sheaf_status sheaf_optimizer_step(sheaf_optimizer *optimizer,
                                            const sheaf_gradients *gradients, double learning_rate,
                                            double scale, sheaf_step_report *report);

#ifdef __cplusplus
}
#endif

#endif /* SHEAF_GRADIENTS_H */
