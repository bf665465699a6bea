// x, [1.5, 2.5], 3
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2xf32>, tensor<i64>) {
    %1 = stablehlo.constant dense<"0x0000C03F00002040"> : tensor<2xf32>
    %2 = stablehlo.constant dense<3> : tensor<i64>
    "func.return"(%arg0, %1, %2) : (tensor<4x8xf32>, tensor<2xf32>, tensor<i64>) -> ()
  }
}
