// RUN: sheaf-opt --reduce-folds=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --reduce-folds=without=reduce-folds %s | FileCheck %s --check-prefix=OFF
// OFF-NOT: "fold_

// CHECK: reduce-folds.mlir:[[#@LINE+18]]:{{.*}} remark: this fold is fold_add over all elements{{$}}
// CHECK: remark: this fold is fold_mul, fold_minimum over all elements{{$}}
// CHECK: remark: this fold is fold_maximum over all elements; what it takes of them is computed for all at once
// CHECK: remark: this fold runs step by step: what it takes of an element has no product: each step computes it along, without a record of its own
// CHECK: remark: this fold runs step by step: what it carries is used for more than its next value
// CHECK: remark: this fold runs step by step: what it carries is used for more than its next value
// CHECK: remark: this fold runs step by step: its next value is not add, mul, maximum or minimum of what it carries and of something else
// CHECK: remark: this fold runs step by step: it carries tensors of extents that are not known here
// CHECK: remark: this fold runs step by step: elements have other extents than what it carries
// CHECK: remark: this fold runs step by step: it carries something else beside tensors; a count of elements is len of the list
// CHECK: remark: this fold runs step by step: it reads, and what its steps made is not kept until the last
// CHECK: remark: this fold runs step by step: it reads, and what its steps made is not kept until the last
// CHECK-NOT: remark

// CHECK-LABEL: func.func @plain
// CHECK-NEXT: %[[S:.*]] = sheaf.apply "fold_add"(%arg0, %arg1) {reversed = 1 : i64}
// CHECK-NEXT: return %[[S]]
func.func @plain(%init: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  %r = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %s = sheaf.apply "add"(%x, %acc) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Fields of tuples, in another order, by the number of the element, too.
// CHECK-LABEL: func.func @tuples
// CHECK: %[[M:.*]] = sheaf.map %arg1
// CHECK: ^bb0(%[[E:.*]]: tuple<tensor<2xf32>, tensor<4xf32>>, %[[N:.*]]: i64):
// CHECK: %[[B:.*]] = sheaf.get %[[E]][1]
// CHECK: %[[A:.*]] = sheaf.list_get %arg2[%[[N]]]
// CHECK: %[[T:.*]] = sheaf.tuple(%[[B]], %[[A]])
// CHECK: sheaf.yield %[[T]]
// CHECK: %[[L0:.*]] = sheaf.map %[[M]]
// CHECK: sheaf.get %{{.*}}[0]
// CHECK: %[[L1:.*]] = sheaf.map %[[M]]
// CHECK: sheaf.get %{{.*}}[1]
// CHECK: %[[I0:.*]] = sheaf.get %arg0[0]
// CHECK: %[[R0:.*]] = sheaf.apply "fold_mul"(%[[I0]], %[[L0]])
// CHECK: %[[I1:.*]] = sheaf.get %arg0[1]
// CHECK: %[[R1:.*]] = sheaf.apply "fold_minimum"(%[[I1]], %[[L1]])
// CHECK: %[[R:.*]] = sheaf.tuple(%[[R0]], %[[R1]])
// CHECK: return %[[R]]
func.func @tuples(%init: tuple<tensor<4xf32>, tensor<2xf32>>, %xs: !sheaf.list<tuple<tensor<2xf32>, tensor<4xf32>>>, %ys: !sheaf.list<tensor<2xf32>>) -> tuple<tensor<4xf32>, tensor<2xf32>> {
  %r = sheaf.fold %init, %xs : (tuple<tensor<4xf32>, tensor<2xf32>>, !sheaf.list<tuple<tensor<2xf32>, tensor<4xf32>>>) -> tuple<tensor<4xf32>, tensor<2xf32>> {
  ^bb0(%acc: tuple<tensor<4xf32>, tensor<2xf32>>, %x: tuple<tensor<2xf32>, tensor<4xf32>>, %n: i64):
    %b = sheaf.get %x[1] : (tuple<tensor<2xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %a = sheaf.list_get %ys[%n] : (!sheaf.list<tensor<2xf32>>) -> tensor<2xf32>
    %p = sheaf.get %acc[0] : (tuple<tensor<4xf32>, tensor<2xf32>>) -> tensor<4xf32>
    %q = sheaf.get %acc[1] : (tuple<tensor<4xf32>, tensor<2xf32>>) -> tensor<2xf32>
    %m = sheaf.apply "minimum"(%q, %a) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %s = sheaf.apply "mul"(%p, %b) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %t = sheaf.tuple(%s, %m) : (tensor<4xf32>, tensor<2xf32>) -> tuple<tensor<4xf32>, tensor<2xf32>>
    sheaf.yield %t : tuple<tensor<4xf32>, tensor<2xf32>>
  }
  return %r : tuple<tensor<4xf32>, tensor<2xf32>>
}

// CHECK-LABEL: func.func @products
// CHECK: %[[M:.*]] = sheaf.map %arg1
// CHECK: %[[P:.*]] = sheaf.apply "matmul"
// CHECK: sheaf.yield %[[P]]
// CHECK: sheaf.apply "fold_maximum"(%arg0, %[[M]])
func.func @products(%init: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>, %w: tensor<4x4xf32>) -> tensor<4xf32> {
  %r = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "maximum"(%acc, %p) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @refused
// CHECK-NOT: "fold_
func.func @refused(%init: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>, %both: tuple<tensor<4xf32>, tensor<4xf32>>, %d: tensor<?xf32>, %ds: !sheaf.list<tensor<?xf32>>, %row: tensor<3x4xf32>) {
  %0 = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %t = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%acc, %t) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %1 = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %t = sheaf.apply "mul"(%x, %acc) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%acc, %t) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  // The new value of one part is an element of the other.
  %2 = sheaf.fold %both, %xs : (tuple<tensor<4xf32>, tensor<4xf32>>, !sheaf.list<tensor<4xf32>>) -> tuple<tensor<4xf32>, tensor<4xf32>> {
  ^bb0(%acc: tuple<tensor<4xf32>, tensor<4xf32>>, %x: tensor<4xf32>):
    %p = sheaf.get %acc[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %q = sheaf.get %acc[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%p, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %m = sheaf.apply "mul"(%q, %s) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %t = sheaf.tuple(%s, %m) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    sheaf.yield %t : tuple<tensor<4xf32>, tensor<4xf32>>
  }
  %3 = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %s = sheaf.apply "sub"(%x, %acc) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %4 = sheaf.fold %d, %ds : (tensor<?xf32>, !sheaf.list<tensor<?xf32>>) -> tensor<?xf32> {
  ^bb0(%acc: tensor<?xf32>, %x: tensor<?xf32>):
    %s = sheaf.apply "add"(%acc, %x) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    sheaf.yield %s : tensor<?xf32>
  }
  %5 = sheaf.fold %row, %xs : (tensor<3x4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<3x4xf32> {
  ^bb0(%acc: tensor<3x4xf32>, %x: tensor<4xf32>):
    %s = sheaf.apply "add"(%acc, %x) {} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    sheaf.yield %s : tensor<3x4xf32>
  }
  // Numbers of the host are not tensor code.
  %zero = arith.constant 0 : i64
  %ns = sheaf.range %zero, %zero : !sheaf.list<i64>
  %6 = sheaf.fold %zero, %ns : (i64, !sheaf.list<i64>) -> i64 {
  ^bb0(%acc: i64, %x: i64):
    %s = arith.addi %acc, %x : i64
    sheaf.yield %s : i64
  }
  %counted = sheaf.tuple(%init, %zero) : (tensor<4xf32>, i64) -> tuple<tensor<4xf32>, i64>
  %7 = sheaf.fold %counted, %xs : (tuple<tensor<4xf32>, i64>, !sheaf.list<tensor<4xf32>>) -> tuple<tensor<4xf32>, i64> {
  ^bb0(%acc: tuple<tensor<4xf32>, i64>, %x: tensor<4xf32>):
    %p = sheaf.get %acc[0] : (tuple<tensor<4xf32>, i64>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%p, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %t = sheaf.tuple(%s, %zero) : (tensor<4xf32>, i64) -> tuple<tensor<4xf32>, i64>
    sheaf.yield %t : tuple<tensor<4xf32>, i64>
  }
  %8 = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %g = func.call @reading(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%acc, %g) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %9 = sheaf.fold %init, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %one = sheaf.apply "window"(%x) {axis = 0 : i64, size = 1 : i64, start = 0 : i64} : (tensor<4xf32>) -> tensor<1xf32>
    %f = sheaf.read %one : (tensor<1xf32>) -> f64
    %s = sheaf.apply "add"(%acc, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return
}

func.func private @reading(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = sheaf.apply "window"(%x) {axis = 0 : i64, size = 1 : i64, start = 0 : i64} : (tensor<4xf32>) -> tensor<1xf32>
  %f = sheaf.read %one : (tensor<1xf32>) -> f64
  return %x : tensor<4xf32>
}
