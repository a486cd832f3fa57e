/* train.h - Trainings from their first step to their end
 *
 * A model that was compiled with `training`, whose entry is a loss of one instance, is trained on
 * instances in memory or of a file:
 *
 *   sheaf_values_read(model, "train.txt", NULL, &data);
 *   sheaf_training_options options = {sizeof options};
 *   options.epochs = 20;
 *   sheaf_training_create(session, model, data, &options, &training);
 *   sheaf_training_event event = {sizeof event};
 *   while (sheaf_training_next(training, NULL, &event) == SHEAF_OK &&
 *          event.kind != SHEAF_TRAINING_ENDED)
 *     printf("%llu: %g\n", (unsigned long long)event.step, event.loss);
 *
 * The weights are those of the model in the session (gradients.h has steps one by one). They are
 * the same bits as `sheaf train` comes to from the same weights, data and options, on any number of
 * threads. See docs/embedding.md.
 *
 * Nothing here prints, ends the process, sets a signal handler or reads the environment.
 */
#ifndef SHEAF_TRAIN_H
#define SHEAF_TRAIN_H

#include "sheaf/gradients.h"
#include "sheaf/sheaf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data of files ------------------------------------------------------------------------ */

typedef struct sheaf_read_options {
  size_t size;          /* sizeof(sheaf_read_options) */
  const char *format;   /* one that `sheaf help formats` lists; NULL: as the file tells */
  uint64_t limit;       /* most instances; 0: all */
  int32_t strict;       /* other than 0: what the entry does not take is an error, not ignored */
  int32_t strict_words; /* other than 0: so is a word that a vocabulary lacks, not `<unk>` */
  uint64_t skip_bad;    /* records that cannot be read and are left out, at most */
  sheaf_stop *stop;     /* requested, gives the reading up: SHEAF_STOPPED; NULL: nothing */
} sheaf_read_options;

/* Reads the instances of a file for the model's entry, as `sheaf train` does; their ids are their
 * numbers. `options` may be null. SHEAF_INVALID for a file that is not fit for the entry, with file
 * and line; SHEAF_NOT_READABLE for one that cannot be read. */
SHEAF_API sheaf_status sheaf_values_read(sheaf_model *model, const char *path,
                                         const sheaf_read_options *options, sheaf_values **values);

/* What was read over. Texts live as long as the values. Of values that no file gave all is zero. */
typedef struct sheaf_read_report {
  size_t size;               /* sizeof(sheaf_read_report), to be set by the caller */
  uint64_t skipped;          /* records that could not be read */
  const char *first_skipped; /* the first of them: place and message; NULL: none */
  uint64_t words;            /* that were looked up in vocabularies */
  uint64_t unknown_words;    /* of them such as a vocabulary lacks */
} sheaf_read_report;
SHEAF_API sheaf_status sheaf_values_report(const sheaf_values *values, sheaf_read_report *report);
/* Where an instance was read, as "train.txt:17"; null when no file gave it. */
SHEAF_API const char *sheaf_values_place(const sheaf_values *values, size_t instance);

/* ---- Measures ----------------------------------------------------------------------------- */

/* What a function of the model comes to over data: the mean of numbers or truth values, or a score
 * of pairs of predicted and actual classes (docs/training.md#metrics). Immutable. */
typedef struct sheaf_measure sheaf_measure;

typedef struct sheaf_measure_options {
  size_t size;            /* sizeof(sheaf_measure_options) */
  const char *score;      /* of pairs: accuracy, precision, recall or f1; NULL: f1 */
  uint64_t batch;         /* instances that run together; 0: 64. In a training: as it has them */
  sheaf_stop *stop;       /* requested, ends it: SHEAF_STOPPED; NULL: nothing */
  int32_t less_is_better; /* in a training, other than 0: as of a loss */
} sheaf_measure_options;

/* Of the model's entry, with the weights that it has in the session. `options` may be null. */
SHEAF_API sheaf_status sheaf_measure_take(sheaf_session *session, sheaf_model *model,
                                          const sheaf_values *data,
                                          const sheaf_measure_options *options,
                                          sheaf_measure **measure);
SHEAF_API void sheaf_measure_release(sheaf_measure *measure);

/* Of classes, those that occur on either side count; of truth values, `true`. */
typedef struct sheaf_scores {
  size_t size;         /* sizeof(sheaf_scores), to be set by the caller */
  double value;        /* the mean, or the score that was asked for; NaN of no instances */
  uint64_t instances;  /* that did not fail */
  uint64_t failed;     /* the others */
  const char *error;   /* of the first that failed, with its place; NULL: none did. It lives as
                        * long as the measure */
  int32_t has_classes; /* other than 0: it is of pairs, and what follows is there */
  double accuracy, precision, recall, f1;
  uint64_t predictions; /* pairs */
  size_t cells;         /* of sheaf_measure_cell() */
} sheaf_scores;
SHEAF_API sheaf_status sheaf_measure_scores(const sheaf_measure *measure, sheaf_scores *scores);
/* The instance that `error` tells of. Texts live as long as the measure. */
SHEAF_API sheaf_status sheaf_measure_failure(const sheaf_measure *measure, sheaf_failure *failure);
/* How often a class was taken for which: one of the cells that are not 0, in the order of actual,
 * then of predicted classes. */
SHEAF_API sheaf_status sheaf_measure_cell(const sheaf_measure *measure, size_t cell,
                                          int64_t *actual, int64_t *predicted, uint64_t *times);

/* ---- Trainings ---------------------------------------------------------------------------- */

typedef struct sheaf_training sheaf_training;

/* In all numbers 0 stands for the default, and one below 0 for 0. */
typedef struct sheaf_training_options {
  size_t size;                              /* sizeof(sheaf_training_options) */
  uint64_t epochs;                          /* times through the data; 0: 10 */
  uint64_t batch;                           /* instances a mini-batch; 0: 64 */
  uint64_t accumulate;                      /* mini-batches that make one step; 0: 1 */
  uint64_t patience;                        /* epochs without a better one that end it; 0: never */
  uint64_t seed;                            /* of the order of the instances */
  double learning_rate;                     /* 0: 0.001 */
  const char *schedule;                     /* constant, linear or cosine; NULL: constant */
  uint64_t warmup;                          /* steps over which the rate grows */
  const sheaf_optimizer_options *optimizer; /* NULL: adam */
  int32_t sum;            /* other than 0: a step takes the sum of its losses, not their mean */
  int32_t find_anomalies; /* other than 0: looks for where gradients that are not finite begin */
  double average;    /* of the weights that are measured and saved, from step to step; 0: none */
  double loss_scale; /* 0: dynamic when the model computes in f16, else 1; below 0: dynamic */

  const char *directory; /* of weights and checkpoints, as `sheaf train -o`; NULL: none */
  int32_t resume;        /* other than 0: goes on after the newest checkpoint, if there is one */
  int32_t keep_best;     /* other than 0: the best weights in memory, without a directory */
  uint64_t checkpoint_every; /* steps; 0: at the ends of epochs alone */
  int64_t keep;              /* checkpoints; 0: 2; below 0: none when it has ended */
  /* Parts that each mini-batch is divided into, by cost, which run one after the other; 0: 1, or as
   * many as the memory limit asks for in the first step. One that is resumed keeps its own. */
  uint64_t parts;
  /* Weights whose names match one of these patterns, `*` being any characters, stay as they are:
   * steps compute no gradients of them, and `norm` and `clip` count none. A pattern that no weight
   * matches is an error, and so is it if none is left that could be trained. */
  const char *const *frozen;
  size_t frozen_count;
} sheaf_training_options;

/* A training of the model's weights in this session, from what they are, or, resumed, from what a
 * checkpoint has. Those that sheaf_session_freeze() names stay, too. `options` may be null.
 * While it is there the session may be used between two calls, but not its weights be changed. What
 * is wrong with the files of the directory is SHEAF_INVALID. */
SHEAF_API sheaf_status sheaf_training_create(sheaf_session *session, sheaf_model *model,
                                             const sheaf_values *data,
                                             const sheaf_training_options *options,
                                             sheaf_training **training);
/* What was not kept by then is lost. */
SHEAF_API void sheaf_training_release(sheaf_training *training);

/* Adds a measure that is taken after every epoch, in the training's session: of a model of the same
 * parameters whose entry is the function. The last that is added decides which weights are best;
 * without any the loss over the training's data does. `options` may be null. */
SHEAF_API sheaf_status sheaf_training_add_measure(sheaf_training *training, sheaf_model *model,
                                                  const sheaf_values *data,
                                                  const sheaf_measure_options *options);

typedef enum sheaf_training_event_kind {
  SHEAF_TRAINING_STEP = 0,
  SHEAF_TRAINING_EPOCH = 1, /* has ended, was measured, and is kept */
  SHEAF_TRAINING_ENDED = 2, /* all epochs, or patience */
  SHEAF_TRAINING_STOPPED = 3
} sheaf_training_event_kind;

typedef struct sheaf_training_event {
  size_t size;        /* sizeof(sheaf_training_event), to be set by the caller */
  int32_t kind;       /* a sheaf_training_event_kind */
  uint64_t step;      /* steps made so far */
  uint64_t steps;     /* of the whole training, if no patience ends it */
  uint64_t epoch;     /* from 1, of the step or the epoch */
  double loss;        /* the mean over the instances of the step, or of the epoch; NaN of none */
  uint64_t instances; /* of the step, or of the epoch since it was begun or resumed */
  uint64_t failed;    /* likewise */
  const char *error;  /* of the first that failed; NULL: none did. Valid until the next call */
  /* Of a step. */
  double norm; /* the length of all gradients, before they were cut */
  double rate, loss_scale;
  double forward_seconds, backward_seconds, update_seconds;
  int32_t skipped;     /* the gradients held NaN or infinity: nothing was changed */
  int32_t changed;     /* any weight was */
  const char *anomaly; /* where they come from, if that was asked for and found; NULL. As `error` */
  /* Of an epoch. */
  double value;            /* what decides, the greater the better; NaN: nothing */
  int32_t best;            /* it is the best so far */
  int32_t nothing_changed; /* no step changed anything */
  int32_t diverges;        /* the loss is not finite, or far above that of the first step */
  uint64_t skipped_steps;
  /* Of a step: how often memory did not hold a part, which then went in two, so that the last bits
   * are not those of the whole. Of an epoch: such steps since it was begun or resumed. */
  uint64_t halved;
  uint64_t parts; /* of a step: that it was made of */
} sheaf_training_event;

/* What comes next. `stop`, which may be null, is heard at once, inside of a step, too: that step
 * changes nothing. A training that was stopped has written a checkpoint, if it has a directory, and
 * the next call goes on, with the same bits as if nothing had happened. */
SHEAF_API sheaf_status sheaf_training_next(sheaf_training *training, sheaf_stop *stop,
                                           sheaf_training_event *event);

/* The instance that `error` of the last event, a step, tells of. Texts are valid as long as that.
 */
SHEAF_API sheaf_status sheaf_training_failure(const sheaf_training *training,
                                              sheaf_failure *failure);

/* Those that were taken when the last epoch ended, in the order in which they were added. */
SHEAF_API size_t sheaf_training_measure_count(const sheaf_training *training);
SHEAF_API sheaf_status sheaf_training_measure(const sheaf_training *training, size_t number,
                                              sheaf_measure **measure);

/* Writes a checkpoint now. An error without a directory. */
SHEAF_API sheaf_status sheaf_training_checkpoint(sheaf_training *training);
/* Writes the weights as they are measured, averages if there are such, to a safetensors file. */
SHEAF_API sheaf_status sheaf_training_save(sheaf_training *training, const char *path);
/* Gives the model its best weights, out of memory or the directory. `*found` is 0 when no epoch was
 * the best, or nothing has kept it. */
SHEAF_API sheaf_status sheaf_training_restore_best(sheaf_training *training, int *found);

/* Gives model `to` the weights that `from` has in this session, by name: to run what was trained. A
 * weight that `from` lacks is an error. */
SHEAF_API sheaf_status sheaf_session_copy_weights(sheaf_session *session, sheaf_model *from,
                                                  sheaf_model *to);

#ifdef __cplusplus
}
#endif

#endif /* SHEAF_TRAIN_H */
