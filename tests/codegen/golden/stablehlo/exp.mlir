// exp(v)
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>) {
    %1 = stablehlo.exponential %arg0 : tensor<8xf32>
    "func.return"(%1) : (tensor<8xf32>) -> ()
  }
}
